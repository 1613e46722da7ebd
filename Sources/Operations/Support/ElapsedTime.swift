/// The time since the creation of this value, on a clock of any type.
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

extension Duration {
  /// The longest or shortest duration replaces a sum that overflows.
  package func adding(_ other: Duration) -> Duration {
    let (sum, isOverflow) = attoseconds.addingReportingOverflow(other.attoseconds)
    return isOverflow ? Duration(attoseconds: other < .zero ? .min : .max) : Duration(attoseconds: sum)
  }

  package func subtracting(_ other: Duration) -> Duration {
    let (difference, isOverflow) = attoseconds.subtractingReportingOverflow(other.attoseconds)
    return isOverflow ? Duration(attoseconds: other < .zero ? .max : .min) : Duration(attoseconds: difference)
  }
}
