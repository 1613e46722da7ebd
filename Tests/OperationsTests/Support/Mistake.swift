#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
/// A programmer's mistake, and what the sentence of the trap must contain.
struct Mistake: Sendable {
  let name: String
  let sentence: [String]
  let body: @Sendable () async throws -> Void

  init(_ name: String, says sentence: String..., body: @escaping @Sendable () async throws -> Void) {
    (self.name, self.sentence, self.body) = (name, sentence, body)
  }

  /// A mistake with a value that `make` creates.
  init<T: Sendable>(
    _ name: String,
    says sentence: String...,
    with make: @autoclosure @escaping @Sendable () -> T,
    body: @escaping @Sendable (T) async throws -> Void
  ) {
    (self.name, self.sentence, self.body) = (name, sentence, { try await body(make()) })
  }
}
#endif
