import Foundation

/// Runs the entries of a mailbox segment. A drain keeps its scheduler alive until they have run.
final class DrainOperation: Operation, @unchecked Sendable {
  private let scheduler: SerialScheduler
  private let segment: Int
  private var batch: Mailbox.Batch

  init(_ scheduler: SerialScheduler, _ segment: Int, _ batch: Mailbox.Batch) {
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

  override func main() {
    // Moves the batch out of the operation, because a second reference would keep finished events alive.
    scheduler.drain(segment, exchange(&batch, with: Mailbox.Batch()))
  }
}

extension SerialScheduler {
  /// Changes the mailbox. If there is no open segment, opens one and enqueues its drain. After a shutdown, a segment is
  /// opened only on request, because refused events need none.
  ///
  /// On the main scheduler, each call has its own segment and drain, because the thread may send something else to the
  /// main queue before its next event.
  func withOpenSegment<Result>(evenIfShutDown: Bool = false, _ change: (inout Mailbox) -> Result) -> Result {
    func isReady(_ mailbox: borrowing Mailbox) -> Bool {
      mailbox.hasOpenSegment || (!evenIfShutDown && mailbox.isShutDown)
    }
    let result = mailbox.withLock { mailbox in isReady(mailbox) ? change(&mailbox) : nil }
    if let result { return result }
    let isMain = isMain
    return ordering.withLock {
      let (result, segment) = mailbox.withLock { mailbox in
        let segment = isReady(mailbox) ? nil : mailbox.open()
        let result = change(&mailbox)
        return (result, isMain && !mailbox.seal() ? nil : segment)
      }
      if let segment { addDrain(of: segment) }
      return result
    }
  }

  private func addDrain(of segment: Int) {
    if !isMain { return add(DrainOperation(self, segment, Mailbox.Batch())) }
    DispatchQueue.main.async { [self] in drain(segment, Mailbox.Batch()) }
  }

  private func add(_ drain: DrainOperation) {
    // Foundation ignores the quality of service of the operation queue.
    let current = qualityOfService
    if current != initialQualityOfService { drain.qualityOfService = current }
    (queue as? SchedulerQueue)?.addDrain(drain)
  }

  /// Runs entries for a few milliseconds, first those that an earlier drain left, and enqueues a drain for the others.
  func drain(_ segment: Int, _ batch: consuming Mailbox.Batch) {
    let isEmpty = Self.running.withValue(self) { runSlice(of: segment, &batch) }
    if isEmpty { return }
    let rest = DrainOperation(self, segment, batch)
    // The remaining entries must precede the operation that sealed the segment.
    rest.queuePriority = .veryHigh
    add(rest)
  }

  /// Returns whether the segment is empty. It is closed in that case.
  private func runSlice(of segment: Int, _ batch: inout Mailbox.Batch) -> Bool {
    // What the main queue has received since must not overtake the rest of a segment.
    let end = isMain ? .max : DispatchTime.now().uptimeNanoseconds + 10_000_000
    var events = 0
    while true {
      if batch.isEmpty {
        batch.clear()
        if !mailbox.withLock({ $0.refill(&batch, from: segment) }) { return true }
      }
      if mode.contains(.suspended) { return false }
      // Reading the clock costs a third of an event.
      if events % 32 == 0, DispatchTime.now().uptimeNanoseconds >= end { return false }
      let entry = batch.next()
      withAutoreleasePool { run(entry) }
      events += 1
    }
  }

  @inline(__always)
  private func run(_ entry: Mailbox.Entry) {
    guard case .event(let event, _) = entry, mode.isPlain else { return runSlowly(entry) }
    count(event)
  }

  @inline(never)
  private func runSlowly(_ entry: Mailbox.Entry) {
    switch entry {
    case .event(let event, let origin):
      if mode.contains(.discarding) { return mailbox.withLock { $0.noteDropped(1) } }
      runInstrumented(origin) { count(event) }
    case .job(let job):
      jobsBegun.countUp()
      runInstrumented(nil) {
        unsafe job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
    case .ticket(let ticket): run(ticket)
    case .mark(let body): body()
    case .takenOut: break
    }
  }

  @inline(__always)
  private func count(_ event: () -> Void) {
    eventsBegun.countUp()
    event()
    eventsRun.countUp()
  }

  private func run(_ ticket: EventTicket) {
    let (body, hasRoom) = mailbox.withLock { ($0.claim(ticket), $0.canAcceptSuspended) }
    if hasRoom { acceptSuspended() }
    guard let body else { return }
    runInstrumented(ticket.origin) { count { body(nil) } }
  }

  func serve(_ ticket: EventTicket) { Self.running.withValue(self) { withAutoreleasePool { run(ticket) } } }
}
