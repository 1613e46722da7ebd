public import Foundation

/// The result builder that collects the members of a group.
///
/// ```swift
/// let importer = GroupOperation("Import") {
///   download ==> parse ==> store  // adds all three
///   for page in pages { fetch(page) }
///   if cleansUp { store ==> CleanUp() }
/// }
/// ```
///
/// The builder adds the operations that the closure names, both sides of every `==>` and `waits(for:)` in the closure,
/// and their direct and indirect dependencies. Operations that have been started, or are in a queue or group, stay where
/// they are. A repeated operation counts once.
///
/// In nested closures, an operation belongs to the group of the outermost closure that names it, with what it waits for.
/// The inner group then waits for it:
///
/// ```swift
/// let crawl = GroupOperation("crawl", maxConcurrentOperationCount: 1) {
///   index  // a member of “crawl”
///   GroupOperation("images") { index ==> image }
/// }
/// ```
///
/// A plain Foundation dependency that was attached outside of the closure stays where it is as well, because it does not
/// report whether it is in a queue. The builder cannot detect that an operation was enqueued by Foundation's own methods.
/// If a member depends on such an operation, create the group from an array instead.
@resultBuilder
public enum OperationBuilder {
  /// Adds an operation, for example the result of a `==>` chain.
  public static func buildExpression(_ operation: Operation) -> [Operation] { [operation] }
  /// Adds several operations.
  public static func buildExpression(_ operations: [Operation]) -> [Operation] { operations }
  /// Permits a statement without a value, such as `print()`.
  public static func buildExpression(_ nothing: ()) -> [Operation] { [] }
  /// Joins consecutive statements.
  public static func buildBlock(_ parts: [Operation]...) -> [Operation] { parts.flatMap(\.self) }
  /// Supports `if` without `else`.
  public static func buildOptional(_ part: [Operation]?) -> [Operation] { part ?? [] }
  /// Supports the first branch of an `if` or `switch`.
  public static func buildEither(first part: [Operation]) -> [Operation] { part }
  /// Supports the other branches of an `if` or `switch`.
  public static func buildEither(second part: [Operation]) -> [Operation] { part }
  /// Supports `for` loops.
  public static func buildArray(_ parts: [[Operation]]) -> [Operation] { parts.flatMap(\.self) }
  /// Supports `if #available`.
  public static func buildLimitedAvailability(_ part: [Operation]) -> [Operation] { part }

  /// Returns the operations and their free direct and indirect dependencies, each once, dependencies first, in O(n + e)
  /// and without recursion. The walk skips an operation that is not free, and its dependencies. Operations in `joined`
  /// are included if free. Other plain dependencies are included only if `joined` is nil.
  static func withDependencies(_ operations: [Operation], joined: [Operation]?) -> [Operation] {
    let joinedIDs = joined.map { Set($0.map { ObjectIdentifier($0) }) }
    func isIncluded(_ operation: Operation) -> Bool {
      isFree(operation) && (operation is AsyncOperation || joinedIDs?.contains(ObjectIdentifier(operation)) != false)
    }
    var seen: Set<ObjectIdentifier> = []
    let named = operations.filter { joinedIDs?.contains(ObjectIdentifier($0)) != true || isIncluded($0) }
    return postorder(
      from: named + (joined ?? []).filter(isIncluded),
      isNew: { seen.insert(ObjectIdentifier($0)).inserted },
      next: { $0.dependencies.filter(isIncluded) }
    )
  }

  private static func isFree(_ operation: Operation) -> Bool {
    (operation as? AsyncOperation)?.isFree ?? operation.isFreePlainOperation
  }
}

extension OperationBuilder {
  /// Makes free what the closure of a group names, and what that waits for, if it belongs to a group of an inner closure.
  /// The inner group waits for it instead, because it would occupy a slot of the outer one meanwhile.
  static func takeBack(_ named: [Operation], from groups: [GroupOperation]) -> [Operation] {
    if groups.count == 1 { return [] }
    lazy var engines = Set(groups.map { ObjectIdentifier($0.engine) })
    var (seen, taken) = (Set<ObjectIdentifier>(), Set<ObjectIdentifier>())
    let all = postorder(
      from: named,
      isNew: { operation in
        if !seen.insert(ObjectIdentifier(operation)).inserted { return false }
        guard let engine = operation.asMember?.core.withLock({ $0.engine }) else { return isFree(operation) }
        let isTaken = engines.contains(ObjectIdentifier(engine))
        if isTaken { taken.insert(ObjectIdentifier(operation)) }
        return isTaken
      },
      next: { $0.dependencies }
    )
    if taken.isEmpty { return [] }
    for group in groups {
      group.engine.giveUp(group.engine.members.filter { taken.contains(ObjectIdentifier($0.represented)) })
    }
    for group in groups {
      var outermost: AsyncOperation = group
      while let outer = outermost.core.withLock({ $0.outer }) { outermost = outer }
      let awaited = group.operations.flatMap(\.dependencies).filter { taken.contains(ObjectIdentifier($0)) }
      var known = Set(outermost.dependencies.map { ObjectIdentifier($0) })
      for operation in awaited where known.insert(ObjectIdentifier(operation)).inserted {
        _ = outermost.addDependencyIfPending(operation)
      }
    }
    return all.filter { taken.contains(ObjectIdentifier($0)) }
  }
}

extension GroupEngine {
  /// Makes members free, unless the group has been started.
  fileprivate func giveUp(_ operations: [AsyncOperation]) {
    if operations.isEmpty { return }
    let indices = operations.map { $0.core.withLock { $0.memberIndex } }
    let identities = Set(operations.map { ObjectIdentifier($0) })
    let isGivenUp = state.withLock { state in
      guard state.schedule.life.isGathering else { return false }
      // The caller has other references, so nothing is released under the lock.
      for (operation, index) in zip(operations, indices) {
        _ = state.members.remove(index)
        state.schedule.ready.remove(ObjectIdentifier(operation))
        state.schedule.memberWasRemoved()
        state.progress.remove(operation)
      }
      state.schedule.cancelled.removeAll { identities.contains(ObjectIdentifier($0)) }
      state.plainMembers.removeAll { identities.contains(ObjectIdentifier($0)) }
      return true
    }
    if isGivenUp { for operation in operations { operation.changeWait { $0.becomeFree() } } }
  }
}

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
