import Foundation
import Synchronization

/// Takes members from a group's engine and starts them, one at a time, on one thread. The engine can therefore detect
/// that the runner's member made another member ready, which the runner takes next. Members refer to their runner, because
/// threads would spend most of their time on the reference count of the engine.
final class GroupRunner: ContinuingQueue, @unchecked Sendable {
  private static let current = ThreadLocal<GroupRunner>()
  private static let batch = 64

  let engine: GroupEngine
  let queue: GroupQueue
  /// The clock of members that have none of their own. Nil for the system's clock.
  let clock: (any Clock<Duration>)?
  // Accessed only on the runner's thread.
  private var member: Operation?
  private var finished: [Operation] = []

  init(for engine: GroupEngine, in queue: GroupQueue, clock: (any Clock<Duration>)?) {
    self.engine = engine
    self.queue = queue
    self.clock = clock
  }

  func continueOperation(at quality: QualityOfService, _ body: @escaping @Sendable () -> Void) {
    engine.workBegins()
    let operation = BlockOperation { [engine] in
      body()
      engine.workDidEnd()
    }
    queue.add(operation, at: quality)
  }

  func run<Result>(_ body: () -> Result) -> Result {
    defer { finished = [] }
    return GroupRunner.current.withValue(self, body)
  }

  /// Whether the member of the current thread's runner has finished, so that the runner takes the next member.
  static func isAboutToTake(from engine: GroupEngine) -> Bool {
    guard let runner = current.current, runner.engine === engine, let member = runner.member else { return false }
    return member.isFinished
  }

  func run(_ member: Operation, _ body: () -> Void) {
    withAutoreleasePool {
      self.member = member
      body()
      self.member = nil
      releaseFinishedMembers()
    }
  }

  /// Releases finished members in batches. On Linux, most of their memory returns to the arena of one thread. If two
  /// runners released at once, they would contend for its lock, and the group would take twice the time.
  private func releaseFinishedMembers() {
    guard finished.count >= GroupRunner.batch else { return }
    let isContended = engine.isReleasing.exchange(true, ordering: .acquiring)
    if isContended, finished.count < GroupRunner.batch * 16 { return }
    finished.removeAll(keepingCapacity: true)
    if !isContended { engine.isReleasing.store(false, ordering: .releasing) }
  }

  func memberDidClose(_ member: AsyncOperation, _ end: OperationCore.End) {
    let isHere = GroupRunner.current.current === self && self.member === member
    if isHere { finished.append(member) }
    engine.memberDidClose(member, end, runnerTakesNext: isHere)
  }
}

/// The place of a group's runners. Nested groups share its `OperationQueue`, which is made for the first runner. The queue
/// has no limit, because groups count their members themselves.
final class GroupQueue: Sendable {
  // Set on each operation, because Foundation else uses that of the thread that made the operation, and not on the queue,
  // because Foundation raises operations to the quality of their queue.
  private let quality: QualityOfService
  private let name: String?
  private let queue: Locked<OperationQueue?>

  /// Called on the thread that starts the group.
  init(of group: GroupOperation) {
    let outer = group.enclosingRunner?.queue
    quality = outer?.quality(of: group) ?? group.qualityOfService.orCurrent
    name = group.name
    queue = outer?.queue ?? Locked(nil)
  }

  func quality(of operation: Operation) -> QualityOfService { quality(operation.qualityOfService) }

  private func quality(_ own: QualityOfService) -> QualityOfService { own == .default ? quality : own }

  func add(_ operation: BlockOperation, at quality: QualityOfService) {
    operation.qualityOfService = self.quality(quality)
    foundationQueue.addOperation(operation)
  }

  private var foundationQueue: OperationQueue {
    if let existing = queue.withLock({ $0 }) { return existing }
    let new = OperationQueue()
    new.name = "Operations.GroupOperation " + (name ?? "")
    return queue.withLock { queue in
      queue = queue ?? new
      return queue ?? new
    }
  }
}
