import Foundation

extension SerialScheduler {
  /// How long one operation of the queue goes on, before others get the thread.
  private struct Slice {
    /// The clock is read once in so many events: reading it costs a third of an event.
    private let stride: Int
    private let end: UInt64
    private var events = 0
    private(set) var isOver = false

    init(isMain: Bool) {
      // On main a quarter of a frame, and never longer than one event more than that.
      stride = isMain ? 1 : 32
      end = DispatchTime.now().uptimeNanoseconds + (isMain ? 4_000_000 : 10_000_000)
    }

    mutating func noteEvent() {
      events += 1
      if events % stride == 0 { isOver = DispatchTime.now().uptimeNanoseconds >= end }
    }
  }

  func enqueue(_ segment: MailboxSegment) { add(DrainOperation(self, segment, MailboxBatch())) }

  private func add(_ drain: DrainOperation) {
    if let changedQualityOfService { drain.qualityOfService = changedQualityOfService }
    if let queue = queue as? SchedulerQueue { queue.addDrain(drain) } else { queue.addOperation(drain) }
  }

  /// Runs what there is, for a while, and has the rest run ahead of everything else.
  ///
  /// - Parameter batch: What has been taken out of the segment and not yet run.
  func drain(_ segment: MailboxSegment, _ batch: consuming MailboxBatch) {
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
    // Ahead of the operation that sealed the segment. On main nothing is sealed, and others shall have their turn.
    if !isMain { rest.queuePriority = .veryHigh }
    add(rest)
  }

  @inline(__always)
  private func run(_ entry: MailboxEntry) {
    guard case .event(let event) = entry.work, core.mode.isPlain else { return runSlowly(entry) }
    count(event)
  }

  @inline(never)
  private func runSlowly(_ entry: MailboxEntry) {
    switch entry.work {
    case .event(let event):
      if core.mode.isDiscarding { return core.mailbox.withLock { $0.noteDropped(1) } }
      watch(entry.origin) { count(event) }
    case .job(let job):
      core.counts.beginJob()
      if core.mode.isPlain { run(job) } else { watch(nil) { run(job) } }
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
    let (body, canAdmit) = core.mailbox.withLock { ($0.claim(ticket), $0.hasRoomForWaiting) }
    if canAdmit { admit() }
    guard let body else { return }
    let event = { if let link = ticket.link { link.run(body) } else { body(nil) } }
    if core.mode.isPlain { count(event) } else { watch(ticket.origin) { count(event) } }
  }

  /// Runs an event on a thread of this scheduler that is blocked meanwhile.
  func serve(_ ticket: EventTicket) { Self.running.withValue(self) { run(ticket) } }
}

/// Runs what has gathered in a segment of the mailbox.
///
/// It holds the scheduler, so that one with events lives until it has run them.
final class DrainOperation: Operation, @unchecked Sendable {
  private let scheduler: SerialScheduler
  private let segment: MailboxSegment
  private var batch: MailboxBatch

  init(_ scheduler: SerialScheduler, _ segment: MailboxSegment, _ batch: MailboxBatch) {
    self.scheduler = scheduler
    self.segment = segment
    self.batch = batch
    super.init()
  }

  override var name: String? {
    get { "events of \(scheduler.name)" }
    set {}
  }

  /// The queue may be told to cancel all its operations. What is in here has been accepted, and runs.
  override func cancel() {}

  override func main() { scheduler.drain(segment, takeBatch()) }

  /// Moved out: a second reference would keep alive what has been run.
  private func takeBatch() -> MailboxBatch {
    var taken = MailboxBatch()
    swap(&taken, &batch)
    return taken
  }
}
