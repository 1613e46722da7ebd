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

  // MARK: Stations

  @Test func nothingWasTraced() throws {
    #expect(tracer.records.isEmpty && tracer.graph.nodes.isEmpty && tracer.summary.operations == 0)
    #expect(tracer.summary.criticalPath == nil && tracer.summary.parallelism == 0)
    #expect(tracer.timeline() == "Nothing has been recorded.\n")
    #expect(try tracer.events().allSatisfy { $0.phase == "M" })
  }

  @Test func stationsHaveTheTimesOfTheClock() async throws {
    let delays = ["first", "second"].map { DelayOperation(.milliseconds(10)).named($0) }
    for delay in delays { delay.clock = clock }
    delays[0] ==> delays[1]
    tracer.trace(delays)
    clock.advance(by: .milliseconds(5))
    queue.name = "work"
    queue.addOperations(delays)
    for _ in delays {
      await clock.waitForSleepers(1)
      clock.advance(by: .milliseconds(10))
    }
    await queue.finished()
    let (one, two) = (try tracer.record("first"), try tracer.record("second"))
    #expect(one.created == .zero && one.ready == .zero && one.duration == .milliseconds(10))
    #expect(one.started == .milliseconds(5) && one.finished == .milliseconds(15))
    #expect(two.ready == .milliseconds(15) && two.started == .milliseconds(15) && two.finished == .milliseconds(25))
    #expect(two.dependencies == [one.id] && two.queue == "work" && two.worker != nil)
    #expect(two.state == .finished && two.cancelled == nil)
  }

  @Test func cancelledBeforeItBeganHasNoExecution() async throws {
    let operation = operation("a")
    tracer.trace(operation)
    clock.advance(by: .milliseconds(5))
    operation.cancel()
    clock.advance(by: .milliseconds(5))
    queue.addOperation(operation)
    await operation.finished()
    let record = try tracer.record("a")
    #expect(record.started == nil && record.duration == nil && record.state == .cancelled)
    #expect(record.cancelled == .milliseconds(5) && record.finished == .milliseconds(10))
  }

  @Test func cancelledWhileItExecutesHasAMarkAndAnEnd() async throws {
    let held = await queue.holding()
    tracer.trace(held)
    clock.advance(by: .seconds(2))
    held.cancel()
    #expect(try tracer.record("held").cancelled == .seconds(2) && tracer.record("held").finished == nil)
    #expect(try tracer.events("i").count == 1)
    held.gate.open()
    await held.finished()
    #expect(try tracer.record("held").state == .cancelled && tracer.record("held").duration == .seconds(2))
  }

  @Test func theDependenciesAreKnownAlsoWhenFinishedOperationsHaveForgottenThem() async throws {
    let (a, b) = (operation("a"), operation("b"))
    tracer.trace(b)
    a ==> b
    tracer.trace(a)
    queue.addOperations([a, b])
    await queue.finished()
    #expect(b.dependencies.isEmpty)
    #expect(try tracer.record("b").dependencies == [tracer.record("a").id])
  }

  @Test func tracedTwiceIsRecordedOnceAndTwoTracersDoNotKnowOfEachOther() async {
    let (other, a, b) = (OperationTracer(clock: clock), operation("a"), operation("b"))
    a ==> b
    other.trace(b)
    for _ in 0..<2 { tracer.trace([a, b, a]) }
    queue.addOperations([a, b])
    await queue.finished()
    #expect(tracer.records.map(\.name) == ["a", "b"] && tracer.records[1].dependencies == [0])
    #expect(other.records.map(\.name) == ["b"] && other.records[0].dependencies.isEmpty)
    #expect((tracer.records + other.records).allSatisfy { $0.state == .finished })
  }

  @Test func whatIsTracedWhileItExecutesBeginsThen() async {
    let (held, late, cancelled) = (await queue.holding(), OperationTracer(clock: clock), operation("cancelled"))
    clock.advance(by: .milliseconds(5))
    tracer.trace(held)
    #expect(tracer.records[0].started == .milliseconds(5) && tracer.records[0].state == .executing)
    clock.advance(by: .milliseconds(5))
    held.gate.open()
    await queue.finished()
    #expect(tracer.records[0].duration == .milliseconds(5) && tracer.records[0].state == .finished)
    late.trace(held)
    cancelled.cancel()
    late.trace(cancelled)
    #expect(late.records.map(\.state) == [.finished, .cancelled] && late.records[0].started == nil)
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
    let (clock, operation) = (TrickClock(), AsyncBlockOperation { _ in })
    let tracer = OperationTracer(clock: clock)
    tracer.trace(operation)
    clock.trick.withLock { $0 = { operation.finish() } }
    await start(operation)
    let record = try #require(tracer.records.first)
    #expect(operation.isFinished && record.state == .finished)
    #expect(try #require(record.started) <= (try #require(record.finished)))
  }

  @Test(arguments: [false, true]) func waitingForAKeyIsShownAsSuch(inAGroup: Bool) async {
    let (domain, holder) = (ExclusivityDomain(), HeldOperation())
    tracer.trace(holder)
    queue.addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    let waiting = HeldOperation().exclusive("key", in: domain)
    tracer.trace(waiting)
    queue.addOperation(inAGroup ? GroupOperation([waiting]) : waiting)
    await poll { tracer.records[1].requestedKeys != nil }
    clock.advance(by: .milliseconds(10))
    holder.gate.open()
    await waiting.begun.opened()
    clock.advance(by: .milliseconds(10))
    waiting.gate.open()
    await waiting.finished()
    #expect(tracer.records[1].requestedKeys == .zero && tracer.records[1].ready == .milliseconds(10))
    #expect(tracer.timeline().contains("::") && tracer.timeline().contains("█"))
    #expect(String(decoding: tracer.chromeTrace(), as: UTF8.self).contains(#""waited_for_keys":"10 ms""#))
  }

  // MARK: Groups

  @Test func membersAreFollowedAlsoThoseThatAreAddedLater() async throws {
    let (held, early, late) = (HeldOperation().named("held"), operation("early"), operation("late"))
    let inner = GroupOperation([operation("inside")]).named("inner")
    let (outer, nested) = (GroupOperation([inner, held]).named("outer"), GroupOperation().named("nested"))
    tracer.trace(outer)
    outer.addOperation(held ==> early)
    queue.addOperation(outer)
    await held.begun.opened()
    clock.advance(by: .seconds(2))
    // Without a member the nested group would be over at once.
    outer.addOperations(held ==> [late, nested])
    nested.addOperation(operation("inside later"))
    held.gate.open()
    await outer.finished()
    let (outerID, heldID) = (try tracer.record("outer").id, try tracer.record("held").id)
    for name in ["held", "inner", "early", "late", "nested"] { #expect(try tracer.record(name).group == outerID) }
    #expect(try tracer.record("inside").group == tracer.record("inner").id)
    #expect(try tracer.record("inside later").group == tracer.record("nested").id)
    for (operation, created) in [(early, Duration.zero), (late, .seconds(2))] {
      let record = try tracer.record(operation.name ?? "")
      #expect(record.created == created && record.dependencies == [heldID])
    }
    #expect(tracer.records.filter(\.isGroup).map(\.name).sorted() == ["inner", "nested", "outer"])
    #expect(tracer.records.map(\.id) == Array(0..<8) && tracer.records.allSatisfy { $0.state == .finished })
  }

  @Test func followedBeforeItWasPutIntoAGroupItIsInside() async throws {
    let (member, group) = (operation("member"), GroupOperation().named("group"))
    tracer.trace([member, group])
    group.addOperation(member)
    queue.addOperation(group)
    await group.finished()
    #expect(try tracer.record("member").group == tracer.record("group").id)
  }

  @Test func aGroupThatAnOperationStartsItselfIsInsideIt() async {
    let group = GroupOperation([operation("member")]).named("group")
    let outer = AsyncBlockOperation { operation in
      group.addObserver(OperationObserver(didFinish: { _ in operation.finish() }))
      group.start()
    }.named("outer")
    tracer.trace(group, inside: outer)
    queue.addOperation(outer)
    await outer.finished()
    #expect(tracer.records.map(\.name) == ["outer", "group", "member"])
    #expect(tracer.records.map(\.group) == [nil, 0, 1] && tracer.summary.operations == 1)
  }

  @Test func theAttemptsOfARetryAreInsideIt() async {
    let retry = RetryOperation(attempts: 3) { attempt in
      ResultOperation { if attempt < 3 { throw TestError("not yet") } }.named("attempt \(attempt)")
    }.named("retry")
    tracer.trace(retry)
    queue.addOperation(retry)
    await retry.finished()
    #expect(tracer.records.map(\.name) == ["retry", "attempt 1", "attempt 2", "attempt 3"])
    #expect(tracer.records.map(\.group) == [nil, 0, 0, 0] && tracer.records[1].error == "not yet")
    #expect(tracer.records.map(\.state) == [.finished, .failed, .failed, .finished])
  }

  // MARK: Plain members

  @Test func plainMembersAreFollowedToo() async throws {
    let (first, second, after) = (plain("first"), plain("second"), operation("after"))
    let classic = ClassicOperation().named("classic")
    first ==> second
    classic ==> after
    let group = GroupOperation([first, second, classic, after])
    tracer.trace(group)
    queue.addOperation(group)
    await classic.begun.opened()
    await second.finished()
    clock.advance(by: .milliseconds(5))
    classic.gate.open()
    await group.finished()
    for name in ["first", "second", "classic"] {
      let record = try tracer.record(name)
      #expect(record.started == .zero && record.state == .finished && record.group == 0)
    }
    #expect(try tracer.record("second").dependencies == [tracer.record("first").id])
    #expect(try tracer.record("classic").finished == .milliseconds(5))
    #expect(try tracer.record("after").dependencies == [tracer.record("classic").id])
  }

  @Test func aPlainMemberThatIsCancelledHasNotExecuted() async throws {
    let group = GroupOperation([plain("plain")])
    tracer.trace(group)
    group.cancel()
    queue.addOperation(group)
    await group.finished()
    let record = try tracer.record("plain")
    #expect(record.started == nil && record.state == .cancelled && record.finished != nil)
  }

  @Test func aPlainMemberThatIsTracedWhileItExecutesEnds() async throws {
    let classic = ClassicOperation().named("classic")
    let group = GroupOperation([classic])
    queue.addOperation(group)
    await classic.begun.opened()
    tracer.trace(group)
    classic.gate.open()
    await group.finished()
    #expect(try tracer.record("classic").finished != nil && tracer.record("classic").state == .finished)
  }

  @Test func aPastOperationsAddressIsNobodysIndex() {
    for round in 0..<100 { tracer.trace(GroupOperation([plain("\(round)")])) }
    #expect(tracer.records.filter { !$0.isGroup }.map(\.name) == (0..<100).map(String.init))
  }

  // MARK: Queues

  @Test func aTracedQueueTracesWhatThePackageAddsToIt() async throws {
    queue.addOperation(operation("before"))
    tracer.trace(queue)
    tracer.trace(queue)
    queue.addOperation(operation("one"))
    queue.addOperations([operation("two"), BlockOperation {}.named("plain"), operation("three")])
    queue.addOperation(operation("exclusive").exclusive("key", in: ExclusivityDomain()))
    queue.addGraph(endingIn: operation("first") ==> operation("last"))
    try await queue.run(GroupOperation("group") { operation("member") })
    try await queue.run {}
    try await queue.addTask("task") { await Task.yield() }.completed()
    OperationQueue().addOperation(operation("elsewhere"))
    queue.addByFoundation(operation("by Foundation"))
    await queue.finished()
    #expect(
      tracer.records.map(\.name) == [
        "one", "two", "three", "exclusive", "first", "last", "group", "member", "ClosureOperation<()>", "task",
      ]
    )
    let added = tracer.records.filter { $0.name != "member" }
    #expect(added.allSatisfy { $0.enqueued != nil } && tracer.records.allSatisfy { $0.state == .finished })
  }

  @Test func severalTracersMayFollowAQueue() async {
    let tracers = [tracer, OperationTracer()]
    for tracer in tracers { tracer.trace(queue) }
    queue.addOperation(operation("a"))
    await queue.finished()
    for tracer in tracers {
      #expect(tracer.records.map(\.name) == ["a"] && tracer.records.allSatisfy { $0.enqueued != nil })
    }
  }

  @Test func aTracedQueueAndItsTracerKeepNeitherAlive() {
    for _ in 0..<100 {
      var queue: OperationQueue? = OperationQueue()
      var tracer: OperationTracer? = OperationTracer()
      weak let (weakQueue, weakTracer) = (queue, tracer)
      if let queue { tracer?.trace(queue) }
      tracer = nil
      #expect(weakTracer == nil)
      queue?.addOperation(AsyncOperation())
      queue?.waitUntilAllOperationsAreFinished()
      queue = nil
      _ = weakQueue
    }
    // What is gone has been forgotten.
    #expect(QueueFollowers.of(OperationQueue()).isEmpty)
  }

  @Test func queuesAreTracedWhileOthersAddOperations() async {
    await onThreads(4) { thread in
      for _ in 0..<200 {
        let (queue, tracer) = (OperationQueue(), OperationTracer())
        tracer.trace(queue)
        let operation = AsyncOperation().named("\(thread)")
        queue.addOperation(operation)
        #expect(tracer.records.map(\.name) == ["\(thread)"])
      }
    }
  }

  // MARK: Being there

  @Test func itKeepsNoOperationAlive() async {
    let live = LiveCount()
    do {
      let group = CountedGroup(live, [operation("ours"), plain("plain")])
      tracer.trace([group, CountedGroup(live, [operation("never run"), plain("never run either")])])
      queue.addOperation(group)
      await queue.finished()
    }
    await live.none()
    #expect(tracer.records.count == 6)
  }
}
