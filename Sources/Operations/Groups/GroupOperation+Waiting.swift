public import Foundation

extension GroupOperation {
  /// Cancels the members. Unlike `cancel()`, this does not cancel the group, which accepts further members.
  public final func cancelAllOperations() { AsyncOperation.cancelAll(engine.members, in: engine) }

  /// Waits until fewer than `count` members are unfinished, without blocking a thread.
  ///
  /// This is backpressure for a task that adds members faster than they finish:
  ///
  /// ```swift
  /// for url in urls {
  ///   await downloads.waitForRoom(below: 100)
  ///   downloads.addOperation(Download(url))
  /// }
  /// ```
  ///
  /// Returns immediately if the group has finished, or if the current task is cancelled, and early if the wait can never
  /// end: see <doc:DebuggingStalls>. Members that wait count, as do all members of a group that has not started, and a
  /// member that waits for room in its own group.
  ///
  /// All waiting tasks resume when there is room. If n tasks then add a member each, the number of members can exceed
  /// `count` by n - 1. A wait costs O(1), and so does the end of a member, however many tasks wait.
  ///
  /// - Precondition: `count` is at least 1.
  public final func waitForRoom(below count: Int) async {
    _ = await engine.waitForRoom(below: count, in: self)
  }

  /// Waits until there are fewer than `count` unfinished members, and adds a member, in one step.
  ///
  /// However many tasks call this method, the number of members never exceeds `count` because of it. The tasks proceed
  /// in the order of their calls. If the group finishes meanwhile, see ``addOperation(_:)``. If the task is cancelled,
  /// the operation is cancelled, added without waiting, and finishes without executing. The same happens, with
  /// ``OperationError/Code/waitCycle``, if the wait can never end.
  ///
  /// ```swift
  /// for page in pages {
  ///   await downloads.addOperation(Load(page), whenBelow: 100)
  /// }
  /// ```
  ///
  /// - Precondition: `count` is at least 1, and the operation can be added.
  public final func addOperation(_ operation: Operation, whenBelow count: Int) async {
    let hasRoom = await engine.waitForRoom(below: count, in: self, adding: operation)
    if Task.isCancelled { operation.cancel() }
    engine.add([operation], skipping: .none, to: self, hasRoom: hasRoom)
  }

  /// Adds a member if fewer than `count` are unfinished, in one step. Otherwise, the operation remains free.
  ///
  /// Tasks that wait to add a member below this count come first. If the group has finished, and `count` is at least 1,
  /// see ``addOperation(_:)``.
  ///
  /// - Precondition: The operation can be added.
  @discardableResult
  public final func addOperation(_ operation: Operation, ifBelow count: Int) -> Bool {
    let hasRoom = engine.state.withLock { $0.hasRoom(below: count, isAdding: true) }
    let isAdded = hasRoom || (isFinished && count > 0)
    if isAdded { engine.add([operation], skipping: .none, to: self, hasRoom: hasRoom) }
    return isAdded
  }

  /// Waits until the group has finished and no work of its members runs, at any depth, without holding a thread.
  ///
  /// A group or a member finishes before its work if it times out, or if it is cancelled and
  /// ``AsyncOperation/finishesWhenCancelled`` is true. Wait for the work before you delete what it uses. The wait includes
  /// the attempts of retries, the task of a ``TaskOperation``, and every `execute()` until it returns. It cannot include
  /// what the `execute()` of a member that finished early has begun elsewhere, such as the work behind an
  /// ``AsyncBlockOperation``, because nothing says when that ends. The wait also ends when the waiting task is cancelled.
  public final func drained() async {
    await finished()
    if isFinished { await waitOrUnregister { engine.waitForDrain($0) } }
  }
}
