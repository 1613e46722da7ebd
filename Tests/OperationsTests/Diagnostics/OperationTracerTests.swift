import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct OperationTracerTests {
  private let clock = ManualClock()
  private let tracer: OperationTracer
  private let queue = OperationQueue()

  init() { tracer = OperationTracer(clock: clock) }

  private func plain(_ name: String) -> Operation { BlockOperation {}.named(name) }

  // MARK: Lifecycle events

  @Test func nothingTraced_recordsNothing() throws {
    #expect(tracer.records.isEmpty && tracer.graph.nodes.isEmpty && tracer.summary.operations == 0)
    #expect(tracer.summary.criticalPath == nil && tracer.summary.parallelism == 0)
    #expect(tracer.timeline() == "Nothing has been recorded.\n")
    #expect(try tracer.events().allSatisfy { $0.ph == "M" })
  }

  @Test func eventsHaveTheTimesOfTheClock() async throws {
    let delays = [clock.delay("first", 10), clock.delay("second", 10)]
    chain(delays)
    tracer.trace(delays)
    clock.advance(by: .milliseconds(5))
    queue.name = "work"
    queue.addOperations(delays)
    await clock.tick(sleepers: [1, 1])
    await queue.finished()
    let (one, two) = (try tracer.record("first"), try tracer.record("second"))
    #expect(one.created == .zero && one.ready == .zero && one.duration == .milliseconds(10))
    #expect(one.started == .milliseconds(5) && one.finished == .milliseconds(15))
    #expect(two.ready == .milliseconds(15) && two.started == .milliseconds(15) && two.finished == .milliseconds(25))
    #expect(two.dependencies == [one.id] && two.queue == "work" && two.thread != nil)
    #expect(two.state == .finished && two.cancelled == nil)
  }

  @Test func cancelledWhileExecutingOrBeforeTheStart_hasTheTimesOfBothEvents() async throws {
    let (held, never) = (await queue.holding(), operation("never"))
    tracer.trace([held, never])
    clock.advance(by: .seconds(2))
    for operation in [held, never] { operation.cancel() }
    #expect(tracer.records.allSatisfy { $0.cancelled == .seconds(2) && $0.finished == nil })
    #expect(try tracer.events("i").count == 2)
    clock.advance(by: .seconds(2))
    held.gate.open()
    await queue.run(settling: [never])
    await held.finished()
    #expect(tracer.records.allSatisfy { $0.state == .cancelled && $0.finished == .seconds(4) })
    #expect(tracer.records.map(\.started) == [.zero, nil] && tracer.records.map(\.duration) == [.seconds(4), nil])
  }

  @Test func dependenciesAreKnownAfterTheEndHasReleasedThem() async throws {
    let (a, b) = (operation("a"), operation("b"))
    tracer.trace(b)
    a ==> b
    tracer.trace(a)
    await queue.run(settling: [a, b])
    #expect(b.dependencies.isEmpty)
    #expect(try tracer.record("b").dependencies == [tracer.record("a").id])
  }

  @Test func tracedTwice_isRecordedOnceByEachTracer() async {
    let (other, a, b) = (OperationTracer(clock: clock), operation("a"), operation("b"))
    a ==> b
    other.trace(b)
    for _ in 0..<2 { tracer.trace([a, b, a]) }
    await queue.run(settling: [a, b])
    #expect(tracer.records.map(\.name) == ["a", "b"] && tracer.records[1].dependencies == [0])
    #expect(other.records.map(\.name) == ["b"] && other.records[0].dependencies.isEmpty)
    #expect((tracer.records + other.records).allSatisfy { $0.state == .finished })
  }

  @Test func tracedWhileExecuting_startsThen() async {
    let (held, late, cancelled) = (await queue.holding(), OperationTracer(clock: clock), operation("cancelled"))
    clock.advance(by: .milliseconds(5))
    tracer.trace(held)
    #expect(tracer.records[0].started == .milliseconds(5) && tracer.records[0].state == .executing)
    clock.advance(by: .milliseconds(5))
    await queue.drained(opening: [held.gate])
    #expect(tracer.records[0].duration == .milliseconds(5) && tracer.records[0].state == .finished)
    late.trace(held)
    cancelled.cancel()
    late.trace(cancelled)
    #expect(late.records.map(\.state) == [.finished, .cancelled] && late.records[0].started == nil)
  }

  /// A clock that calls a closure the next time it is read.
  private struct TrickClock: Clock {
    let trick = Locked<(@Sendable () -> Void)?>(nil)
    var minimumResolution: Duration { .zero }
    var now: ContinuousClock.Instant {
      trick.withLock { $0.take() }?()
      return .now
    }
    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {}
  }

  @Test func finishedAtTheMomentOfItsStartOrCancellation_hasFinishedOrFailed() async {
    let (clock, first, second) = (TrickClock(), AsyncBlockOperation { _ in }, AsyncBlockOperation { _ in })
    let tracer = OperationTracer(clock: clock)
    tracer.trace([first, second])
    clock.trick.withLock { $0 = { first.finish() } }
    await start(first)
    await start(second)
    clock.trick.withLock { $0 = { second.finish() } }
    second.cancel(with: TestError("reason"))
    #expect(first.isFinished && second.isFinished && tracer.records.map(\.state) == [.finished, .failed])
    #expect(tracer.records[0].duration ?? .seconds(-1) >= .zero && tracer.records[1].cancelled != nil)
    #expect(tracer.records.map { $0.executeReturned == nil } == [true, false])
  }

  /// A retry is not a bar but a bracket around its attempts.
  @Test(arguments: [false, true]) func theWaitsOfARetryForItsKey_areShown(inAGroup: Bool) async throws {
    let (domain, first, second) = (ExclusivityDomain(), HeldOperation(), HeldOperation())
    let retry = RetryOperation(attempts: 2, backoff: .constant(.milliseconds(10)), succeeding(at: 2))
    retry.named("retry").exclusive("key", in: domain).clock = clock
    tracer.trace([retry, first])
    await queue.begin(first.exclusive("key", in: domain))
    queue.addOperation(inAGroup ? GroupOperation([retry]) : retry)
    await poll { tracer.records[0].requestedKeys != nil }
    clock.advance(by: .milliseconds(10))
    first.gate.open()
    await clock.waitForSleepers(1)
    await queue.begin(second.exclusive("key", in: domain))
    clock.advance(by: .milliseconds(10))
    await poll { domain.waiting(for: "key") == ["retry"] }
    await poll { !tracer.records[0].keyWaitsAfterPauses(until: tracer.now).isEmpty }
    clock.advance(by: .milliseconds(10))
    await retry.finished(opening: second.gate)
    #expect(tracer.records[0].requestedKeys == .zero && tracer.records[0].ready == .milliseconds(10))
    #expect(tracer.records[0].laterKeyWaits == [.milliseconds(20)..<(.milliseconds(30))])
    clock.advance(by: .milliseconds(10))
    #expect(tracer.timeline().contains(/retry +:+├─+:+┤/), "\(tracer.timeline())")
    #expect(try tracer.events("X").contains { $0.args?.waitedForKeys == "10 ms" })
    let picture = tracer.svg()
    #expect(picture.matches(of: /<rect class="key"/).count == 2 && picture.contains(#"<path class="group "#))
  }

  /// The operation was ready when it was traced, because it had not requested its keys. Foundation starts an operation
  /// that was added by its own method before it has them.
  @Test(arguments: [false, true], [false, true])
  func aWaitForKeysBeforeTheExecution_endsNowOrWithACancellation(isCancelled: Bool, isStarted: Bool) async {
    let (domain, waiting) = (ExclusivityDomain(), operation("waiting"))
    tracer.trace(waiting)
    let holder = await queue.holder(of: "key", in: domain)
    clock.advance(by: .milliseconds(10))
    waiting.exclusive("key", in: domain)
    if isStarted { queue.addOperation(waiting as Operation) } else { queue.addOperation(waiting) }
    await poll { tracer.records[0].requestedKeys != nil }
    clock.advance(by: .milliseconds(20))
    if isCancelled {
      waiting.cancel()
      await waiting.finished()
      clock.advance(by: .milliseconds(40))
    }
    #expect(tracer.html().contains(#"["waited for keys","20 ms"]"#))
    await queue.drained(opening: [holder.gate])
    #expect(tracer.records[0].ready == tracer.records[0].started)
  }

  // MARK: Groups

  @Test func membersAreTraced_evenLaterOnes() async throws {
    let (held, early) = (HeldOperation().named("held"), operation("early"))
    let inner = GroupOperation([operation("inside")]).named("inner")
    let (outer, nested) = (GroupOperation([inner, held]).named("outer"), GroupOperation().named("nested"))
    // One of the members is traced before it is added.
    tracer.trace([outer, early])
    outer.addOperation(held ==> early)
    await queue.add(outer, until: held.begun)
    clock.advance(by: .seconds(2))
    // Without a member the nested group would finish at once.
    outer.addOperations(held ==> [operation("late"), nested])
    nested.addOperation(operation("inside later"))
    await outer.finished(opening: held.gate)
    let (outerID, heldID) = (try tracer.record("outer").id, try tracer.record("held").id)
    for name in ["held", "inner", "early", "late", "nested"] { #expect(try tracer.record(name).group == outerID) }
    #expect(try tracer.record("inside").group == tracer.record("inner").id)
    #expect(try tracer.record("inside later").group == tracer.record("nested").id)
    for (name, created) in [("early", Duration.zero), ("late", .seconds(2))] {
      #expect(try tracer.record(name).created == created && tracer.record(name).dependencies == [heldID])
    }
    #expect(tracer.records.filter(\.isGroup).map(\.name).sorted() == ["inner", "nested", "outer"])
    #expect(tracer.records.map(\.id) == Array(0..<8) && tracer.records.allSatisfy { $0.state == .finished })
  }

  @Test func aGroupThatAnOperationStarts_isInsideIt() async {
    let group = GroupOperation([operation("member")]).named("group")
    let outer = AsyncBlockOperation { operation in
      group.addObserver(OperationObserver(didFinish: { _ in operation.finish() }))
      group.start()
    }.named("outer")
    tracer.trace(group, inside: outer)
    await queue.run(settling: [outer])
    #expect(tracer.records.map(\.name) == ["outer", "group", "member"])
    #expect(tracer.records.map(\.group) == [nil, 0, 1] && tracer.summary.operations == 1)
  }

  @Test func attemptsAreInsideTheirRetry() async {
    let retry = RetryOperation(attempts: 3) { succeeding(at: 3)($0).named("attempt \($0)") }.named("retry")
    tracer.trace([retry], in: queue)
    await retry.finished()
    #expect(tracer.records.map(\.name) == ["retry", "attempt 1", "attempt 2", "attempt 3"])
    #expect(tracer.records.map(\.group) == [nil, 0, 0, 0] && tracer.records[1].error == "again")
    #expect(tracer.records.map(\.state) == [.finished, .failed, .failed, .finished])
  }

  // MARK: Plain members

  @Test func plainMembersAreTraced() async throws {
    let (classic, second) = (ClassicOperation(), plain("second"))
    let group = GroupOperation("group") {
      plain("first") ==> second
      classic.named("classic") ==> operation("after")
    }
    tracer.trace([group], in: queue)
    await classic.begun.opened()
    await second.finished()
    clock.advance(by: .milliseconds(5))
    await group.finished(opening: classic.gate)
    for name in ["first", "second", "classic"] {
      let record = try tracer.record(name)
      #expect(record.started == .zero && record.state == .finished && record.group == 0)
    }
    #expect(try tracer.record("second").dependencies == [tracer.record("first").id])
    #expect(try tracer.record("classic").finished == .milliseconds(5))
    #expect(try tracer.record("after").dependencies == [tracer.record("classic").id])
  }

  @Test func plainMemberTracedWhileItExecutes_ends() async throws {
    let classic = ClassicOperation().named("classic")
    let group = await queue.add(GroupOperation([classic]), until: classic.begun)
    tracer.trace(group)
    await group.finished(opening: classic.gate)
    #expect(try tracer.record("classic").finished != nil && tracer.record("classic").state == .finished)
  }

  @Test func cancelledPlainMember_hasNoExecution() async throws {
    let group = GroupOperation([plain("plain")])
    tracer.trace(group)
    group.cancel()
    await queue.run(settling: [group])
    let record = try tracer.record("plain")
    #expect(record.started == nil && record.state == .cancelled && record.finished != nil)
  }

  @Test func addressOfAReleasedOperation_isNoIndex() {
    for round in 0..<100 { tracer.trace(GroupOperation([plain("\(round)")])) }
    #expect(tracer.records.filter { !$0.isGroup }.map(\.name) == (0..<100).map(String.init))
  }

  // MARK: Queues

  @Test func aTracedQueue_tracesWhatThePackageAddsToIt() async throws {
    let other = OperationTracer()
    queue.addOperation(operation("before"))
    for tracer in [tracer, tracer, other] { tracer.trace(queue) }
    queue.addOperation(operation("one"))
    queue.addOperations([operation("two"), BlockOperation {}.named("plain"), operation("three")])
    queue.addOperation(operation("exclusive").exclusive("key", in: ExclusivityDomain()))
    queue.addGraph(endingIn: operation("first") ==> operation("last"))
    try await queue.run(GroupOperation("group") { operation("member") })
    try await queue.run({}, line: 7)
    try await queue.addTask("task") { await Task.yield() }.completed()
    OperationQueue().addOperation(operation("elsewhere"))
    queue.addByFoundation(operation("by Foundation"))
    await queue.finished()
    #expect(
      tracer.records.map(\.name) == [
        "one", "two", "three", "exclusive", "first", "last", "group", "member",
        "OperationTracerTests.swift, line 7", "task",
      ]
    )
    let added = tracer.records.filter { $0.name != "member" }
    #expect(added.allSatisfy { $0.enqueued != nil } && tracer.records.allSatisfy { $0.state == .finished })
    #expect(other.records.map(\.name) == tracer.records.map(\.name))
  }

  @Test func aTracedQueueKeepsNoTracerAlive() async {
    for _ in 0..<100 {
      let queue = OperationQueue()
      var tracer: OperationTracer? = OperationTracer()
      weak let weakTracer = tracer
      tracer?.trace(queue)
      tracer = nil
      // An addition to any other queue may look the tracer up, and keep it for a moment.
      await poll { weakTracer == nil }
      queue.addOperation(AsyncOperation())
      await queue.finished()
    }
    // A queue at the address of a released one has no followers.
    #expect(QueueFollowers.of(OperationQueue()).isEmpty)
  }

  /// Under the thread sanitizer, this also checks that readers share no storage with the log.
  @Test func itIsReadWhilePlainMembersRun() async {
    let (tracer, rounds) = (OperationTracer(), isThorough ? 100 : 30)
    let run = Task {
      for _ in 0..<rounds {
        let (members, last) = (chain((0..<10).map { _ in plain("member") }), plain("last"))
        let group = GroupOperation(members + [operation("own")])
        tracer.trace(group)
        members[9] ==> last
        group.addOperation(last)
        await queue.run(settling: [group])
      }
    }
    await onThreads(2) { _ in
      for _ in 0..<rounds {
        let records = tracer.records
        #expect(records.allSatisfy { ($0.dependencies.max() ?? 0) < records.count })
        _ = (tracer.timeline(), tracer.summary, tracer.graph, tracer.chromeTrace())
      }
    }
    await run.value
    #expect(tracer.records.count == rounds * 13)
  }

  @Test func aTracerKeepsNoOperationAlive() async {
    let live = LiveCount()
    do {
      let group = CountedGroup(live, [operation("own"), plain("plain")])
      tracer.trace([group, CountedGroup(live, [operation("never run"), plain("never run either")])])
      queue.addOperation(group)
      await queue.finished()
    }
    await live.none()
    #expect(tracer.records.count == 6)
  }
}
