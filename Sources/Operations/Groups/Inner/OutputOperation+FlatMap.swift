extension OutputOperation {
  /// An operation that ends as the one does that this one's value leads to.
  ///
  /// ```swift
  /// let firstPage = try await queue.run(graphEndingIn: index.flatMap { Download($0.pages[0]) })
  /// ```
  ///
  /// What `next` returns runs inside it, together with what that waits for, as far as it is in no queue or group yet,
  /// and is cancelled with it. One that is in a queue or a group, or has finished, is somebody else's: it is only
  /// waited for. Returning the operation that `flatMap` has made is a mistake that ends the program; one that waits for
  /// that operation, and runs inside it, ends it with ``OperationError/Code/dependencyCycle``.
  public func flatMap<Next: OutputOperation>(
    _ next: @escaping @Sendable (Output) throws -> Next
  ) -> ResultOperation<Next.Output> {
    pass(to: FlatMapOperation(next))
  }
}
