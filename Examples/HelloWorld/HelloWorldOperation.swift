import Operations

/// Two operations as one: whoever adds it to a queue need not know what it is made of.
final class HelloWorldOperation: GroupOperation, @unchecked Sendable {
  init() {
    let hello = TextOperation("Hello")
    let world = TextOperation("World")
    super.init("HelloWorld") { hello ==> world }
  }
}
