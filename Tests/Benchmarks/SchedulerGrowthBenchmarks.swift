import Operations

/// How the time grows when there is four times as much to do: 4 is linear, 16 quadratic.
enum SchedulerGrowthBenchmarks {
  static let all: [Benchmark] = [
    growth("delays-descending", of: 10_000, "delayed events, each due before the one before it", descendingDelays),
    growth(
      "delays-cancelled",
      of: 10_000,
      "delayed events, cancelled in the order in which they are due",
      cancelledDelays
    ),
    growth("wait-nesting", of: 200, "nested waits of two schedulers for each other", nestedWaits),
  ]

  private static func growth(
    _ name: String,
    of count: Int,
    _ unit: String,
    _ body: @escaping @Sendable (Int) -> Void
  ) -> Benchmark {
    Benchmark(
      name: name,
      unit: "round of \(4 * count) or \(count) \(unit)",
      numerator: Workload(name: "\(4 * count)", units: 1) { body(4 * count) },
      denominator: Workload(name: "\(count)", units: 1) { body(count) },
      target: .atMost(6)
    )
  }

  private static func descendingDelays(_ count: Int) {
    let scheduler = SerialScheduler(name: "later")
    for index in 0..<count { scheduler.schedule(after: .seconds(100_000) - .milliseconds(index)) {} }
    scheduler.shutDown(.discard)
  }

  private static func cancelledDelays(_ count: Int) {
    let scheduler = SerialScheduler(name: "later")
    let events = (0..<count).map { scheduler.schedule(after: .seconds(100_000) + .milliseconds($0)) {} }
    for event in events { event.cancel() }
  }

  private static func nestedWaits(_ count: Int) {
    nest(SerialScheduler(name: "A"), SerialScheduler(name: "B"), count)
  }

  private static func nest(_ first: SerialScheduler, _ second: SerialScheduler, _ depth: Int) {
    if depth == 0 { return }
    do { try first.wait { nest(second, first, depth - 1) } } catch { fatalError("\(error)") }
  }
}
