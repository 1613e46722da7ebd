import Foundation
import Operations
import Testing

// A module in which everything belongs to the main actor unless it says otherwise. An operation runs on the thread its
// queue gives it, so its class says so.

nonisolated final class Greeting: AsyncOperation, @unchecked Sendable {
  private let greeting: String

  init(_ greeting: String) {
    self.greeting = greeting
    super.init()
  }

  override func execute() {
    named(greeting)
    finish()
  }
}

nonisolated final class Greetings: GroupOperation, @unchecked Sendable {
  init() { super.init { Greeting("Hello") ==> Greeting("World") } }
}

nonisolated final class Length: ResultOperation<Int>, @unchecked Sendable {
  override func execute() { finish(returning: 5) }
}

struct MainActorModuleTests {
  @Test func subclassesRunOffTheMainActor() async throws {
    let queue = OperationQueue()
    let greeting = Greeting("Hello")
    try await queue.run(greeting)
    #expect(greeting.name == "Hello")
    try await queue.run(Greetings())
    #expect(try await queue.run(Length()) == 5)
  }

  @Test func closuresRunOffTheMainActor() async throws {
    let queue = OperationQueue()
    let block = AsyncBlockOperation { operation in
      #expect(!Thread.isMainThread)
      operation.finish()
    }
    let last = ResultOperation { Thread.isMainThread }
    block ==> last
    #expect(try await queue.run(graphEndingIn: last) == false)
  }
}
