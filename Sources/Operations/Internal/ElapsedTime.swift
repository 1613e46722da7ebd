/// A clock of any type, read as the time since the creation of this value.
struct ElapsedTime: Sendable {
  let clock: any Clock<Duration>
  private let read: @Sendable () -> Duration

  init(_ clock: any Clock<Duration>) {
    func reading(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
      let start = clock.now
      return { start.duration(to: clock.now) }
    }
    self.clock = clock
    read = reading(clock)
  }

  var now: Duration { read() }
}
