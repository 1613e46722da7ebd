/// Why a condition is not met, in words, and the errors that are to blame.
struct UnmetCondition: Error {
  let reason: String
  let causes: [any Error]

  init(reason: String, causes: [any Error]) {
    self.reason = reason
    self.causes = causes
  }

  /// What a condition threw: one of these, or an error of the user's.
  init(_ error: any Error) {
    self = error as? UnmetCondition ?? UnmetCondition(reason: describe(error), causes: [error])
  }
}
