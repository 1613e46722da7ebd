extension ResultOperation {
  /// Finishes with what `body` returns or throws, in a task that is cancelled with the operation, and the operation
  /// with it.
  final func finishByTask(priority: TaskPriority?, _ body: @escaping @Sendable () async throws -> Output) {
    adopt(
      Task(priority: priority) {
        let result: Result<Output, any Error>
        do {
          let output = try await withTaskCancellationHandler {
            try await body()
          } onCancel: {
            self.cancel()
          }
          result = .success(output)
        } catch { result = .failure(error) }
        if case .failure(is CancellationError) = result {
          self.cancel()
          self.finish()
        } else {
          self.finish(with: result)
        }
      },
      while: .executing
    )
  }
}
