extension OutputOperation {
  /// An operation that ends as the one does that this one's value leads to.
  ///
  /// ```swift
  /// let firstPage = try await queue.run(graphEndingIn: index.flatMap { Download($0.pages[0]) })
  /// ```
  ///
  /// What `next` returns is run inside it, together with what that waits for, as far as it is in no queue or group yet; it
  /// must not be in one itself. It is cancelled with the outer operation.
  public func flatMap<Next: OutputOperation>(
    _ next: @escaping @Sendable (Output) throws -> Next
  ) -> ResultOperation<Next.Output> {
    pass(to: FlatMapOperation(next))
  }
}
