/// What waits in a mailbox to be run.
struct MailboxEntry {
  enum Work {
    case event(@Sendable () -> Void)
    case ticket(EventTicket)
    /// A piece of a task, which must run whatever happens to the scheduler, or its task would wait for ever.
    case job(UnownedJob)
    /// Somebody who wants to know that everything before has been run.
    case mark(@Sendable () -> Void)
    /// It has been run.
    case none
  }

  let work: Work
  /// Nil for a job.
  let origin: EventOrigin?

  /// Also if the scheduler has been shut down.
  var mustRun: Bool {
    switch work {
    case .job, .mark: true
    case .event, .ticket, .none: false
    }
  }

  init(_ work: Work, _ origin: EventOrigin? = nil) {
    self.work = work
    self.origin = origin
  }
}
