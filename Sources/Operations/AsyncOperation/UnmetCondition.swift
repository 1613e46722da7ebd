/// The reason why a condition is not met, and the errors that caused it.
struct UnmetCondition: Error {
  let reason: String
  let causes: [any Error]

  init(reason: String, causes: [any Error]) {
    self.reason = reason
    self.causes = causes
  }

  /// Wraps an error that a condition threw, unless it is an `UnmetCondition` already.
  init(_ error: any Error) {
    self = error as? UnmetCondition ?? UnmetCondition(reason: describe(error), causes: [error])
  }
}
