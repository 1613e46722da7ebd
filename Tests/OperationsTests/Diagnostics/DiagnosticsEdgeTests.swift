import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Cases in which a report or a trace has once been wrong.
@Suite(.timeLimit(.minutes(5)))
struct DiagnosticsEdgeTests {
  @Test func slotsOfWhichNotAllHoldersGetOnAreNoReasonToEndTheProgram() async {
    let queue = OperationQueue.limited(to: 2)
    let held = HeldOperation().named("held")
    let missing = AsyncBlockOperation { $0.finish() }.named("missing")
    let member = AsyncBlockOperation { $0.finish() }.named("member")
    member.waits(for: missing)
    let group = GroupOperation("group") { HeldOperation().named("inner") }
    group.addOperation(member)
    queue.addOperation(held)
    queue.addOperation(group)
    let waiting = AsyncBlockOperation { $0.finish() }.named("waiting")
    queue.addOperation(waiting)
    await held.begun.opened()
    let inner = group.operations[0] as! HeldOperation
    await inner.begun.opened()
    let report = queue.stallReport()
    #expect(report.entries.first { $0.operation == "waiting" }?.cause == .saturated, "\(report)")
    OperationQueue().addOperation(missing)
    held.gate.open()
    inner.gate.open()
    await queue.finished()
  }

  @Test func aCycleBesideAFreeHolder() async {
    let queue = OperationQueue.limited(to: 2)
    let held = HeldOperation().named("held")
    let waiting = AsyncBlockOperation { $0.finish() }.named("waiting")
    let inner = HeldOperation().named("inner")
    let member = AsyncBlockOperation { $0.finish() }.named("member")
    member.waits(for: waiting)
    let group = GroupOperation([inner, member]).named("group")
    queue.addOperation(held)
    queue.addOperation(group)
    queue.addOperation(waiting)
    await held.begun.opened()
    await inner.begun.opened()
    let report = queue.stallReport()
    #expect(report.entries.first { $0.operation == "waiting" }?.cause == .saturated, "\(report)")
    held.gate.open()
    inner.gate.open()
    await queue.finished()
  }

  @Test func oneWhoseDependencyIsJustTellingOfItsEndIsNotCalledUnready() async {
    let queue = OperationQueue()
    let first = AsyncBlockOperation { $0.finish() }.named("first")
    let second = AsyncBlockOperation { $0.finish() }.named("second")
    second.waits(for: first)
    let causes = Journal<StallReport.Cause?>()
    first.addObserver(
      OperationObserver(didFinish: { _ in
        causes.write(queue.stallReport().entries.first { $0.operation == "second" }?.cause)
      })
    )
    queue.addOperations([first, second])
    await second.finished()
    #expect(causes.entries == [.transitioning])
  }

  @Test func aMemberWithAKeyWaitsForItsGroup() {
    let missing = GroupOperation("never added") {}
    missing.addOperation(AsyncOperation().named("member").exclusive("key", in: ExclusivityDomain()))
    let report = missing.stallReport()
    #expect(report.entries.first { $0.operation == "member" }?.cause == .notEnqueued, "\(report)")
    missing.cancel()
    missing.start()
  }

  @Test func aLoweredLimitCanCloseACycle() async {
    let queue = OperationQueue.limited(to: 2)
    let held = HeldOperation().named("held")
    let inner = HeldOperation().named("inner")
    let waiting = AsyncBlockOperation { $0.finish() }.named("waiting")
    let member = AsyncBlockOperation { $0.finish() }.named("member")
    member.waits(for: waiting)
    let group = GroupOperation([inner, member]).named("group")
    queue.addOperation(held)
    queue.addOperation(group)
    await held.begun.opened()
    await inner.begun.opened()
    queue.maxConcurrentOperationCount = 1
    queue.addOperation(waiting)
    let report = queue.stallReport()
    #expect(report.entries.first { $0.operation == "waiting" }?.cause == .cycle, "\(report)")
    queue.maxConcurrentOperationCount = -1
    held.gate.open()
    inner.gate.open()
    await queue.finished()
  }

  @Test func whoWaitsForASlotThatIsPartOfACycleIsToldOfIt() async {
    let queue = OperationQueue.limited(to: 1)
    let first = AsyncBlockOperation { $0.finish() }.named("first")
    let member = AsyncBlockOperation { $0.finish() }.named("member")
    member.waits(for: first)
    let group = GroupOperation([member]).named("group")
    let second = AsyncBlockOperation { $0.finish() }.named("second")
    let third = AsyncBlockOperation { $0.finish() }.named("third")
    third.waits(for: second)
    let begun = Gate()
    group.addObserver(OperationObserver(didStart: { _ in begun.open() }))
    queue.addOperations([group, first, second, third])
    await begun.opened()
    let report = queue.stallReport()
    let entries = Dictionary(uniqueKeysWithValues: report.entries.map { ($0.operation, $0) })
    #expect(entries["second"]?.cause == .cycle && entries["second"]?.root == "group", "\(report)")
    let sentence = "; “group” waits for its member “member”, which waits for “first”"
    #expect(entries["second"]?.description.contains(sentence) == true, "\(report)")
    #expect(entries["third"]?.cause == .cycle && entries["third"]?.root == "group", "\(report)")
    #expect(entries["third"]?.description.contains("in a cycle") == true, "\(report)")
    queue.maxConcurrentOperationCount = -1
    await queue.finished()
  }

  @Test func aPlainMemberThatIsWaitedForFromOutsideIsInItsGroup() async {
    let (first, second) = (OperationQueue(), OperationQueue())
    let held = HeldOperation().named("held")
    let member = BlockOperation {}.named("plain")
    let group = GroupOperation([held, member]).named("group")
    group.maxConcurrentOperationCount = 1
    let waiting = AsyncBlockOperation { $0.finish() }.named("waiting")
    waiting.waits(for: member)
    first.addOperation(group)
    second.addOperation(waiting)
    await held.begun.opened()
    let report = second.stallReport(alsoIn: [first])
    #expect(report.entries.first { $0.operation == "plain" }?.cause == .saturated, "\(report)")
    held.gate.open()
    await first.finished()
    await second.finished()
  }

  @Test func askedWhilePausesEnd() async {
    for _ in 0..<200 {
      let clock = ManualClock()
      let retry = RetryOperation<Int>(attempts: 2, backoff: .constant(.seconds(1))) { attempt in
        ResultOperation { if attempt == 1 { throw TestError("again") } else { 1 } }
      }
      let group = GroupOperation([retry]).named("group")
      group.clock = clock
      OperationQueue().addOperation(group)
      await clock.waitForSleepers(1)
      await onThreads(2) { thread in
        if thread == 0 {
          clock.advance(by: .seconds(1))
        } else {
          for _ in 0..<5 { _ = group.stallReport() }
        }
      }
      await group.finished()
    }
  }

  @Test func manyWhoWaitForACycleThroughManyMembers() async {
    let queue = OperationQueue.limited(to: 1)
    let waiters = OperationQueue()
    let (wanted, last) = (AsyncBlockOperation { $0.finish() }.named("wanted"), AsyncBlockOperation { $0.finish() })
    last.waits(for: wanted)
    let held = (0..<800).map { _ in HeldOperation() }
    let group = GroupOperation(held + [last]).named("group")
    queue.addOperation(group)
    for operation in held { await operation.begun.opened() }
    queue.addOperation(wanted)
    let others = (0..<800).map { _ in AsyncBlockOperation { $0.finish() } }
    for other in others { other.waits(for: wanted) }
    waiters.addOperations(others)
    let report = waiters.stallReport()
    #expect(report.entries.count == 1603 && report.entries.count { $0.cause == .cycle } == 803)
    queue.maxConcurrentOperationCount = -1
    for operation in held { operation.gate.open() }
    await queue.finished()
    await waiters.finished()
  }

  @Test func tracedLateAnExecutingOperationIsExecuting() async {
    let held = HeldOperation().named("held")
    await start(held)
    let tracer = OperationTracer()
    tracer.trace(held)
    #expect(tracer.records.first?.state == .executing)
    held.gate.open()
    await held.finished()
    let cancelled = HeldOperation().named("cancelled")
    cancelled.cancel()
    tracer.trace(cancelled)
    #expect(tracer.records.last?.state == .cancelled)
  }

  /// A clock that ends an operation when it is looked at.
  private final class TrickClock: Clock, @unchecked Sendable {
    typealias Instant = ContinuousClock.Instant
    let trick = Locked<(@Sendable () -> Void)?>(nil)
    var minimumResolution: Duration { .zero }
    var now: Instant {
      let body = trick.withLock { trick in
        defer { trick = nil }
        return trick
      }
      body?()
      return ContinuousClock.now
    }
    func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
  }

  @Test func endedInTheInstantInWhichItBeginsItHasEnded() async throws {
    let clock = TrickClock()
    let tracer = OperationTracer(clock: clock)
    let operation = AsyncBlockOperation { _ in }
    tracer.trace(operation)
    clock.trick.withLock { $0 = { operation.finish() } }
    await start(operation)
    let record = try #require(tracer.records.first)
    #expect(operation.isFinished && record.state == .finished)
    #expect(try #require(record.started) <= (try #require(record.finished)))
  }

  @Test func aPlainMemberThatIsCancelledHasNotExecuted() async throws {
    let tracer = OperationTracer()
    let group = GroupOperation([BlockOperation {}.named("plain")]).named("group")
    tracer.trace(group)
    group.cancel()
    OperationQueue().addOperation(group)
    await group.finished()
    let record = try #require(tracer.records.first { $0.name == "plain" })
    #expect(record.started == nil && record.state == .cancelled && record.finished != nil)
  }

  @Test func aPlainMemberThatIsTracedWhileItExecutesEnds() async throws {
    let tracer = OperationTracer()
    let classic = ClassicOperation().named("classic")
    let group = GroupOperation([classic]).named("group")
    OperationQueue().addOperation(group)
    await classic.begun.opened()
    tracer.trace(group)
    classic.gate.open()
    await group.finished()
    let record = try #require(tracer.records.first { $0.name == "classic" })
    #expect(record.finished != nil && record.state == .finished)
  }

  @Test func anOperationThatOutlivesItsStarterIsNotOnItsRow() async throws {
    let clock = ManualClock()
    let tracer = OperationTracer(clock: clock)
    let inner = AsyncBlockOperation { operation in
      clock.advance(by: .seconds(8))
      operation.finish()
    }.named("inner")
    let outer = AsyncBlockOperation { _ in
      clock.advance(by: .seconds(1))
      inner.start()
    }.named("outer")
    outer.clock = clock
    outer.timeout = .seconds(5)
    tracer.trace([outer, inner])
    await start(outer)
    try expectNesting(tracer)
  }

  @Test func aGroupThatOutlivesTheOneAroundItIsNotDrawnInsideIt() async throws {
    let clock = ManualClock()
    let tracer = OperationTracer(clock: clock)
    let held = HeldOperation().named("held")
    let inner = GroupOperation([held]).named("inner")
    let first = HeldOperation().named("first")
    inner.waits(for: first)
    let outer = GroupOperation([inner, first]).named("outer")
    outer.clock = clock
    outer.timeout = .seconds(5)
    tracer.trace(outer)
    OperationQueue().addOperation(outer)
    await first.begun.opened()
    clock.advance(by: .seconds(1))
    first.gate.open()
    await held.begun.opened()
    clock.advance(by: .seconds(4))
    await outer.finished()
    clock.advance(by: .seconds(5))
    held.gate.open()
    await inner.finished()
    #expect(tracer.records.map(\.duration) == [.seconds(5), .seconds(9), .seconds(1), .seconds(9)])
    try expectNesting(tracer)
  }

  @Test func noArrowLeadsBackInTime() async throws {
    let clock = ManualClock()
    let tracer = OperationTracer(clock: clock)
    let (first, second) = (HeldOperation().named("first"), AsyncBlockOperation { $0.finish() }.named("second"))
    second.waits(for: first)
    tracer.trace([first, second])
    second.removeDependency(first)
    let queue = OperationQueue()
    queue.addOperation(first)
    await first.begun.opened()
    clock.advance(by: .seconds(5))
    queue.addOperation(second)
    await second.finished()
    clock.advance(by: .seconds(5))
    first.gate.open()
    await queue.finished()
    let json = try #require(try JSONSerialization.jsonObject(with: tracer.chromeTrace()) as? [String: Any])
    let arrow = try #require(json["traceEvents"] as? [[String: Any]])
      .filter { ["s", "f"].contains($0["ph"] as? String ?? "") }.compactMap { ($0["ts"] as? NSNumber)?.doubleValue }
    #expect(arrow == [5_000_000, 5_000_000])
  }

  @Test func aFanOfManyIsTracedInLinearTime() {
    let tracer = OperationTracer()
    let sink = AsyncBlockOperation { $0.finish() }
    let sources = (0..<30_000).map { _ in AsyncBlockOperation { $0.finish() } }
    for source in sources { sink.waits(for: source) }
    tracer.trace(sources)
    tracer.trace(sink)
    #expect(tracer.records.last?.dependencies.count == 30_000)
  }
}

/// Slices of one row lie beside each other or inside each other.
func expectNesting(_ tracer: OperationTracer, _ comment: Comment? = nil) throws {
  let json = try #require(try JSONSerialization.jsonObject(with: tracer.chromeTrace()) as? [String: Any])
  let events = try #require(json["traceEvents"] as? [[String: Any]])
  var rows: [Int: [(start: Double, end: Double, name: String)]] = [:]
  for event in events where event["ph"] as? String == "X" {
    let (start, duration) = ((event["ts"] as! NSNumber).doubleValue, (event["dur"] as! NSNumber).doubleValue)
    rows[(event["tid"] as! NSNumber).intValue, default: []]
      .append((start, start + duration, event["name"] as? String ?? ""))
  }
  for row in rows.values {
    var open: [Double] = []
    for slice in row.sorted(by: { $0.start == $1.start ? $0.end > $1.end : $0.start < $1.start }) {
      while let last = open.last, last <= slice.start + 0.0005 { open.removeLast() }
      if let last = open.last { #expect(slice.end <= last + 0.0005, "\(slice) overlaps: \(comment ?? "")") }
      open.append(slice.end)
    }
  }
}
