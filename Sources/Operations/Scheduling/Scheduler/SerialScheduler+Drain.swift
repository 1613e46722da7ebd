import Foundation

/// An operation that runs the entries of a mailbox segment.
///
/// A drain retains its scheduler, so a scheduler with events stays alive until they have run.
final class DrainOperation: Operation, @unchecked Sendable {
  private let scheduler: SerialScheduler
  private let segment: Mailbox.Segment
  private var batch: Mailbox.Batch

  init(_ scheduler: SerialScheduler, _ segment: Mailbox.Segment, _ batch: Mailbox.Batch) {
    self.scheduler = scheduler
    self.segment = segment
    self.batch = batch
    super.init()
  }

  override var name: String? {
    get { "events of \(scheduler.name)" }
    set {}
  }

  /// Does nothing, because accepted events must run even if all operations of the queue are cancelled.
  override func cancel() {}

  override func main() { scheduler.drain(segment, takeBatch()) }

  /// Moves the batch out of the operation, because a second reference would keep finished events alive.
  private func takeBatch() -> Mailbox.Batch {
    var taken = Mailbox.Batch()
    swap(&taken, &batch)
    return taken
  }
}

extension SerialScheduler {
  /// The time for which a drain runs before it yields the thread.
  private struct Slice {
    /// The number of events between two readings of the clock. A reading costs a third of an event.
    private let stride: Int
    private let end: UInt64
    private var events = 0
    private(set) var isOver = false

    init(isMain: Bool) {
      // A quarter of a frame on the main thread, checked after every event.
      stride = isMain ? 1 : 32
      end = DispatchTime.now().uptimeNanoseconds + (isMain ? 4_000_000 : 10_000_000)
    }

    mutating func noteEvent() {
      events += 1
      if events % stride == 0 { isOver = DispatchTime.now().uptimeNanoseconds >= end }
    }
  }

  func enqueue(_ segment: Mailbox.Segment) { add(DrainOperation(self, segment, Mailbox.Batch())) }

  private func add(_ drain: DrainOperation) {
    if let changedQualityOfService { drain.qualityOfService = changedQualityOfService }
    if let queue = queue as? SchedulerQueue { queue.addDrain(drain) } else { queue.addOperation(drain) }
  }

  /// Runs the entries of a segment for one slice, and enqueues another drain for the remaining entries.
  ///
  /// - Parameter batch: The entries that an earlier drain took out of the segment and did not run.
  func drain(_ segment: Mailbox.Segment, _ batch: consuming Mailbox.Batch) {
    var slice = Slice(isMain: isMain)
    let hasRest = Self.running.withValue(self) {
      while true {
        while !slice.isOver, !core.mode.isSuspended, let entry = batch.next() {
          run(entry)
          slice.noteEvent()
        }
        if batch.isEmpty {
          batch.clear()
          if !core.mailbox.withLock({ $0.refill(&batch, from: segment) }) { return false }
        }
        if slice.isOver || core.mode.isSuspended { return true }
      }
    }
    if !hasRest { return }
    let rest = DrainOperation(self, segment, batch)
    // The remaining entries must precede the operation that sealed the segment. The main scheduler seals no segments,
    // so other operations can run in between.
    if !isMain { rest.queuePriority = .veryHigh }
    add(rest)
  }

  @inline(__always)
  private func run(_ entry: Mailbox.Entry) {
    guard case .event(let event) = entry.work, core.mode.isPlain else { return runSlowly(entry) }
    count(event)
  }

  @inline(never)
  private func runSlowly(_ entry: Mailbox.Entry) {
    switch entry.work {
    case .event(let event):
      if core.mode.isDiscarding { return core.mailbox.withLock { $0.noteDropped(1) } }
      runInstrumented(entry.origin) { count(event) }
    case .job(let job):
      core.counts.beginJob()
      if core.mode.isPlain { run(job) } else { runInstrumented(nil) { run(job) } }
    case .ticket(let ticket): run(ticket)
    case .mark(let body): body()
    case .none: break
    }
  }

  @inline(__always)
  private func count(_ event: () -> Void) {
    core.counts.beginEvent()
    event()
    core.counts.endEvent()
  }

  private func run(_ job: UnownedJob) {
    unsafe job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
  }

  private func run(_ ticket: EventTicket) {
    let (body, hasRoom) = core.mailbox.withLock { ($0.claim(ticket), $0.canAcceptSuspended) }
    if hasRoom { acceptSuspended() }
    guard let body else { return }
    let event = { if let link = ticket.link { link.run(body) } else { body(nil) } }
    if core.mode.isPlain { count(event) } else { runInstrumented(ticket.origin) { count(event) } }
  }

  /// Runs an event on the current thread of this scheduler, which is blocked in a wait.
  func serve(_ ticket: EventTicket) { Self.running.withValue(self) { run(ticket) } }
}
