public import Foundation

extension GroupOperation {
  /// Creates a group of exactly these operations, with a limit and a policy.
  public convenience init(
    _ operations: [Operation] = [],
    maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
    errorPolicy: ErrorPolicy = .collect
  ) {
    self.init(operations)
    self.maxConcurrentOperationCount = maxConcurrentOperationCount
    self.errorPolicy = errorPolicy
  }

  /// Creates a group of the operations in the result builder and of their dependencies, with a limit and a policy.
  public convenience init(
    _ name: String? = nil,
    maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
    errorPolicy: ErrorPolicy = .collect,
    @OperationBuilder _ operations: () -> [Operation]
  ) {
    self.init(name, operations)
    self.maxConcurrentOperationCount = maxConcurrentOperationCount
    self.errorPolicy = errorPolicy
  }

  /// Creates a group without members, with a name.
  public convenience init(
    _ name: String?,
    maxConcurrentOperationCount: Int = OperationQueue.defaultMaxConcurrentOperationCount,
    errorPolicy: ErrorPolicy = .collect
  ) {
    self.init([], maxConcurrentOperationCount: maxConcurrentOperationCount, errorPolicy: errorPolicy)
    self.name = name
  }

  /// Opens the group and starts it by hand, as a queue of one's own.
  ///
  /// ```swift
  /// let saves = GroupOperation("saves", maxConcurrentOperationCount: 1)
  ///   .started()
  /// saves.addOperation(Save(document))
  /// ```
  ///
  /// The group needs no `OperationQueue`. It ends with `finish()`, with `cancel()`, or when its last owner releases it
  /// while it has no members. Members keep it alive, so nothing must be written in a `deinit`. See ``staysOpen``.
  ///
  /// - Precondition: The group has not been started, is in no queue or group, and waits for no operation.
  public final func started() -> Self {
    staysOpen = true
    start()
    return self
  }
}
