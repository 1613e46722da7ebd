import Foundation

extension SerialScheduler {
  /// How long one operation of the queue goes on, before others get the thread.
  private struct Slice {
    /// The clock is read once in so many events: reading it costs a third of an event.
    private let stride: Int
    private let end: ContinuousClock.Instant
    private var events = 0
    private(set) var isOver = false

    init(of scheduler: SerialScheduler) {
      // On main a quarter of a frame, and never longer than one event more than that.
      let isMain = scheduler.isMain
      stride = isMain ? 1 : 32
      end = .now + (isMain ? .milliseconds(4) : .milliseconds(10))
    }

    mutating func noteEvent() {
      events += 1
      if events % stride == 0, !isOver { isOver = .now >= end }
    }
  }

  func enqueue(_ segment: MailboxSegment) { add(DrainOperation(self, segment)) }

  private func add(_ drain: DrainOperation) {
    if let queue = queue as? SchedulerQueue { queue.addDrain(drain) } else { queue.addOperation(drain) }
  }

  /// Runs what there is, for a while, and has the rest run ahead of everything else.
  func drain(_ segment: MailboxSegment) {
    var slice = Slice(of: self)
    let rest = Self.running.withValue(self) { () -> DrainOperation? in
      while true {
        while !slice.isOver, let entry = segment.next() {
          run(entry)
          slice.noteEvent()
        }
        if !segment.hasNext {
          segment.clear()
          guard core.mailbox.withLock({ $0.refill(segment) }) else { return nil }
        }
        if slice.isOver { return DrainOperation(self, segment) }
      }
    }
    guard let rest else { return }
    // Ahead of the operation that sealed the segment. On main nothing is sealed, and others shall have their turn.
    if !isMain { rest.queuePriority = .veryHigh }
    add(rest)
  }

  private func run(_ entry: MailboxEntry) {
    switch entry.work {
    case .event(let event):
      if core.mode.isPlain {
        count(event)
      } else if core.mode.isDiscarding {
        core.mailbox.withLock { $0.noteDropped(1) }
      } else {
        watch(entry.origin) { count(event) }
      }
    case .job(let job):
      core.counts.beginJob()
      if core.mode.isPlain { run(job) } else { watch(nil) { run(job) } }
    case .ticket(let ticket): run(ticket)
    case .mark(let body): body()
    case .none: break
    }
  }

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
