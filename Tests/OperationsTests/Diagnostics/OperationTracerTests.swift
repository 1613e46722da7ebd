import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite struct OperationTracerTests {
  private let journal = Journal<String>()
  private let clock = ManualClock()
  private let tracer: OperationTracer

  init() { tracer = OperationTracer(clock: clock) }

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  /// An operation that executes for a time of the clock.
  private func delay(_ name: String, _ milliseconds: Int) -> DelayOperation {
    let operation = DelayOperation(.milliseconds(milliseconds)).named(name)
    operation.clock = clock
    return operation
  }

  private func record(_ name: String) throws -> OperationTracer.Record {
    try #require(tracer.records.first { $0.name == name })
  }

  /// Moves the clock on by 10 ms each time when there are as many delays under way as expected.
  private func run(_ operation: AsyncOperation, delays: [Int], in queue: OperationQueue = OperationQueue()) async {
    queue.addOperation(operation)
    for count in delays {
      await clock.waitForSleepers(count)
      clock.advance(by: .milliseconds(10))
    }
    await operation.finished()
  }

  // MARK: Stations

  @Test func stationsHaveTheTimesOfTheClock() async throws {
    let (first, second) = (delay("first", 10), delay("second", 10))
    first ==> second
    tracer.trace([first, second])
    clock.advance(by: .milliseconds(5))
    let queue = OperationQueue()
    queue.name = "work"
    queue.addOperation(first)
    await run(second, delays: [1, 1], in: queue)
    let (one, two) = (try record("first"), try record("second"))
    #expect(one.created == .zero)
    #expect(one.ready == .zero)
    #expect(one.started == .milliseconds(5))
    #expect(one.finished == .milliseconds(15))
    #expect(one.duration == .milliseconds(10))
    #expect(two.ready == .milliseconds(15))
    #expect(two.started == .milliseconds(15))
    #expect(two.finished == .milliseconds(25))
    #expect(two.dependencies == [one.id])
    #expect(two.queue == "work")
    #expect(two.worker != nil)
    #expect(two.state == .finished)
    #expect(two.cancelled == nil)
  }

  @Test func cancelledBeforeItBeganHasNoExecution() async throws {
    let operation = note("a")
    tracer.trace(operation)
    clock.advance(by: .milliseconds(5))
    operation.cancel()
    clock.advance(by: .milliseconds(5))
    OperationQueue().addOperation(operation)
    await operation.finished()
    let record = try record("a")
    #expect(record.started == nil)
    #expect(record.duration == nil)
    #expect(record.cancelled == .milliseconds(5))
    #expect(record.finished == .milliseconds(10))
    #expect(record.state == .cancelled)
  }

  @Test func failedHasTheErrorInWords() async throws {
    let operation = NoteOperation("a", journal, failing: TestError("no network"))
    tracer.trace(operation)
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(try record("a").state == .failed)
    #expect(try record("a").error == "no network")
  }

  @Test func theDependenciesAreKnownAlsoWhenFinishedOperationsHaveForgottenThem() async throws {
    let (a, b) = (note("a"), note("b"))
    tracer.trace(b)
    a ==> b
    tracer.trace(a)
    let queue = OperationQueue()
    queue.addOperations([a, b])
    await queue.finished()
    #expect(b.dependencies.isEmpty)
    #expect(try record("b").dependencies == [record("a").id])
  }

  @Test func tracedTwiceIsRecordedOnce() async {
    let operation = note("a")
    tracer.trace(operation)
    tracer.trace([operation, operation])
    #expect(tracer.records.count == 1)
  }

  @Test func twoTracersDoNotKnowOfEachOther() async throws {
    let other = OperationTracer(clock: clock)
    let (a, b) = (note("a"), note("b"))
    a ==> b
    other.trace(b)
    tracer.trace([a, b])
    let queue = OperationQueue()
    queue.addOperations([a, b])
    await queue.finished()
    #expect(tracer.records.map(\.name) == ["a", "b"])
    #expect(tracer.records[1].dependencies == [0])
    #expect(other.records.map(\.name) == ["b"])
    #expect(other.records[0].dependencies.isEmpty)
    #expect(other.records[0].state == .finished)
  }

  @Test func whatIsTracedWhileItExecutesBeginsThen() async throws {
    let held = HeldOperation().named("held")
    let queue = OperationQueue()
    queue.addOperation(held)
    await held.begun.opened()
    clock.advance(by: .milliseconds(5))
    tracer.trace(held)
    #expect(tracer.records[0].started == .milliseconds(5))
    clock.advance(by: .milliseconds(5))
    held.gate.open()
    await queue.finished()
    #expect(tracer.records[0].duration == .milliseconds(5))
    let late = OperationTracer(clock: clock)
    late.trace(held)
    #expect(late.records[0].state == .finished)
    #expect(late.records[0].started == nil)
  }

  // MARK: Groups

  @Test func membersAreFollowedAlsoThoseThatAreAddedLater() async throws {
    let (first, added) = (note("first"), note("added"))
    let inner = GroupOperation([note("inside")]).named("inner")
    let outer = GroupOperation([inner, first]).named("outer")
    first ==> added
    tracer.trace(outer)
    outer.addOperation(added)
    OperationQueue().addOperation(outer)
    await outer.finished()
    #expect(tracer.records.map(\.name).sorted() == ["added", "first", "inner", "inside", "outer"])
    let (outerID, innerID) = (try record("outer").id, try record("inner").id)
    #expect(try record("outer").group == nil)
    for name in ["first", "added", "inner"] { #expect(try record(name).group == outerID) }
    #expect(try record("inside").group == innerID)
    #expect(try record("added").dependencies == [record("first").id])
    #expect(tracer.records.allSatisfy { $0.state == .finished })
    #expect(tracer.records.allSatisfy { $0.isGroup == ["outer", "inner"].contains($0.name) })
  }

  @Test func aMemberThatAddsAnotherIsFollowedByIt() async throws {
    let (group, added) = (GroupOperation().named("group"), note("added"))
    let adding = AsyncBlockOperation { [unowned group] operation in
      group.addOperation(added)
      operation.finish()
    }
    group.addOperation(adding.named("adding"))
    tracer.trace(group)
    OperationQueue().addOperation(group)
    await group.finished()
    #expect(tracer.records.map(\.name) == ["group", "adding", "added"])
    #expect(try record("added").finished != nil)
  }

  @Test func plainMembersAreFollowedToo() async throws {
    let (first, second) = (plain("first", journal), plain("second", journal))
    let (classic, after) = (ClassicOperation().named("classic"), note("after"))
    second.addDependency(first)
    classic ==> after
    let group = GroupOperation([first, second, classic, after]).named("group")
    tracer.trace(group)
    OperationQueue().addOperation(group)
    await classic.begun.opened()
    await second.finished()
    clock.advance(by: .milliseconds(5))
    classic.gate.open()
    await group.finished()
    for name in ["first", "second", "classic"] {
      let record = try record(name)
      #expect(record.started == .zero)
      #expect(record.state == .finished)
      #expect(record.group == 0)
    }
    #expect(try record("second").dependencies == [record("first").id])
    #expect(try record("classic").finished == .milliseconds(5))
    #expect(try record("after").dependencies == [record("classic").id])
  }

  @Test func theAttemptsOfARetryAreInsideIt() async throws {
    let retry = RetryOperation(attempts: 3) { attempt in
      ResultOperation { if attempt < 3 { throw TestError("not yet") } }.named("attempt \(attempt)")
    }.named("retry")
    tracer.trace(retry)
    OperationQueue().addOperation(retry)
    await retry.finished()
    #expect(tracer.records.map(\.name) == ["retry", "attempt 1", "attempt 2", "attempt 3"])
    #expect(tracer.records.dropFirst().allSatisfy { $0.group == 0 })
    #expect(tracer.records.map(\.state) == [.finished, .failed, .failed, .finished])
  }

  // MARK: Lifetime

  @Test func itKeepsNoOperationAlive() async {
    let live = LiveCount()
    do {
      let group = CountedGroup(live, [note("ours"), plain("plain", journal)])
      let forgotten = CountedGroup(live, [note("never run"), plain("never run either", journal)])
      tracer.trace([group, forgotten])
      let queue = OperationQueue()
      queue.addOperation(group)
      await queue.finished()
    }
    await live.none()
    #expect(tracer.records.count == 6)
  }

  @Test func aPastOperationsAddressIsNobodysIndex() {
    for round in 0..<100 {
      tracer.trace(GroupOperation([plain("\(round)", journal)]))
    }
    #expect(tracer.records.filter { !$0.isGroup }.map(\.name) == (0..<100).map(String.init))
  }

  // MARK: Pictures

  /// A group in which one waits for another, and one beside it that fails.
  private func importer() -> GroupOperation {
    let (download, parse) = (delay("Download", 20), delay("Parse", 10))
    let check = NoteOperation("Check", journal, failing: TestError("not signed"))
    let group = GroupOperation("Import") {
      download ==> parse
      check
    }
    let skipped = note("Skipped")
    skipped.cancel()
    group.addOperation(skipped)
    return group
  }

  @Test func theTimelineIsDrawnToScale() async {
    let group = importer()
    tracer.trace(group)
    await run(group, delays: [1, 1, 1])
    #expect(
      tracer.timeline(width: 60) == """
                    0 s                         30 ms
        Import      ├───────────────────────────────┤  30 ms, failed
          Download  ██████████████████████             20 ms
          Parse                           ███████████  10 ms
          Check     █                                  0 s, failed
          Skipped   ×                                  cancelled

        """
    )
  }

  @Test func theTimelineIsAsLongAndAsWideAsAsked() async {
    let group = GroupOperation((0..<50).map { note("an operation with quite a long name, number \($0)") })
    tracer.trace(group)
    OperationQueue().addOperation(group)
    await group.finished()
    let lines = tracer.timeline(width: 70, lines: 10).split(separator: "\n")
    #expect(lines.count == 12)
    #expect(lines.last == "… and 41 more.")
    #expect(lines.allSatisfy { $0.count <= 70 })
    #expect(OperationTracer().timeline() == "Nothing has been recorded.\n")
  }

  @Test func theTimelineKeepsItsWidthWithLongNamesDeepInside() async {
    var group = GroupOperation("a group with quite a long name, number 0") { note("a member with quite a long name") }
    for number in 1...12 { group = GroupOperation([group]).named("a group with quite a long name, number \(number)") }
    let cancelled = note("an operation that will be cancelled")
    cancelled.cancel()
    tracer.trace([group, cancelled])
    OperationQueue().addOperation(group)
    await group.finished()
    for width in [40, 50, 60, 80] {
      let lines = tracer.timeline(width: width).split(separator: "\n")
      #expect(lines.count == 16)
      for line in lines { #expect(line.count <= width && line.last != " ", "\(width): “\(line)”") }
      #expect(lines.dropFirst().allSatisfy { $0.contains("…") })
    }
    #expect(tracer.timeline() == tracer.timeline(width: 80))
  }

  @Test func theTimelineHasNoTrailingBlanks() async {
    let operations = [note("a"), note("b")]
    tracer.trace(operations)
    // Finished without having executed: there is nothing to draw, and nothing to say.
    for operation in operations { operation.finish() }
    OperationQueue().addOperations(operations)
    for operation in operations { await operation.finished() }
    let lines = tracer.timeline().split(separator: "\n")
    #expect(lines.count == 3 && lines.allSatisfy { $0.last != " " }, "\(lines)")
  }

  // MARK: Queues

  @Test func aTracedQueueTracesWhatThePackageAddsToIt() async throws {
    let queue = OperationQueue()
    queue.addOperation(note("before"))
    tracer.trace(queue)
    tracer.trace(queue)
    queue.addOperation(note("one"))
    queue.addOperations([note("two"), plain("plain", journal), note("three")])
    queue.addOperation(note("exclusive").exclusive("key", in: ExclusivityDomain()))
    queue.addGraph(endingIn: note("first") ==> note("last"))
    try await queue.run(GroupOperation("group") { note("member") })
    try await queue.run { [journal] in journal.write("closure") }
    try await queue.addTask("task") { await Task.yield() }.completed()
    OperationQueue().addOperation(note("elsewhere"))
    queue.addOperation(note("by Foundation") as Operation)
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
    let (queue, other) = (OperationQueue(), OperationTracer())
    tracer.trace(queue)
    other.trace(queue)
    queue.addOperation(note("a"))
    await queue.finished()
    for tracer in [tracer, other] {
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
    let queue = OperationQueue()
    // What is gone has been forgotten.
    #expect(QueueFollowers.of(queue).isEmpty)
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

  @Test func theSummaryAddsUp() async {
    let (a, b, c) = (delay("a", 20), delay("b", 10), delay("c", 10))
    let group = GroupOperation("group") {
      b ==> c
      a
    }
    tracer.trace(group)
    await run(group, delays: [2, 2])
    let summary = tracer.summary
    #expect(summary.operations == 3)
    #expect(summary.elapsed == .milliseconds(20))
    #expect(summary.busy == .milliseconds(40))
    #expect(summary.parallelism == 2)
    #expect(summary.peak == 2)
    #expect(summary.longestWait == nil)
    #expect(summary.criticalPath?.duration == .milliseconds(20))
    #expect(
      summary.description.hasPrefix(
        "3 operations in 20 ms, 2.0 at once on average, 2 at most.\nCritical path by dependencies, 20 ms: "
      )
    )
  }

  @Test func theLongestWaitIsForATurn() async {
    let (first, second, third) = (delay("first", 10), delay("second", 10), delay("third", 10))
    let group = GroupOperation([first, second, third]).named("group")
    group.maxConcurrentOperationCount = 1
    tracer.trace(group)
    clock.advance(by: .seconds(1))
    await run(group, delays: [1, 1, 1])
    // Not the second before the group began.
    #expect(tracer.summary.longestWait?.name == "third")
    #expect(tracer.summary.longestWait?.duration == .milliseconds(20))
  }

  @Test func waitingBeginsInTheQueue() async {
    let operation = delay("a", 10)
    tracer.trace(operation)
    clock.advance(by: .seconds(1))
    await run(operation, delays: [1])
    #expect(tracer.records[0].enqueued == .seconds(1))
    #expect(tracer.summary.longestWait == nil)
  }

  @Test(arguments: [false, true]) func waitingForAKeyIsShownAsSuch(inAGroup: Bool) async throws {
    let (domain, queue) = (ExclusivityDomain(), OperationQueue())
    let holder = HeldOperation().exclusive("key", in: domain)
    tracer.trace(holder)
    queue.addOperation(holder)
    await holder.begun.opened()
    let waiting = delay("a", 10).exclusive("key", in: domain)
    tracer.trace(waiting)
    queue.addOperation(inAGroup ? GroupOperation([waiting]) : waiting)
    while tracer.records[1].requestedKeys == nil { await Task.yield() }
    clock.advance(by: .milliseconds(10))
    holder.gate.open()
    await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(10))
    await waiting.finished()
    let record = tracer.records[1]
    #expect(record.requestedKeys == .zero && record.ready == .milliseconds(10))
    #expect(tracer.timeline().contains("::") && tracer.timeline().contains("█"))
    #expect(String(decoding: tracer.chromeTrace(), as: UTF8.self).contains(#""waited_for_keys":"10 ms""#))
  }

  @Test func namesAreCutInTheMiddleAndReckonedInColumns() async {
    let names = ["/home/somebody/Documents/letters/1.txt", "日本語", "e\u{301}🍏", "esc\u{1B}[31m\nline"]
    tracer.trace(names.map { note($0) })
    let lines = tracer.timeline().split(separator: "\n").dropFirst()
    #expect(lines.map { $0.components(separatedBy: "  ")[0] }.prefix(2) == ["/home/somebod…/letters/1.txt", "日本語"])
    #expect(lines.allSatisfy { $0.hasSuffix("  pending") })
    #expect(!tracer.timeline().contains("\u{1B}"))
  }

  @Test func aGroupThatAnOperationStartsItselfIsInsideIt() async throws {
    let member = note("member")
    let group = GroupOperation([member]).named("group")
    let outer = AsyncBlockOperation { operation in
      group.addObserver(OperationObserver(didFinish: { _ in operation.finish() }))
      group.start()
    }.named("outer")
    tracer.trace(group, inside: outer)
    OperationQueue().addOperation(outer)
    await outer.finished()
    #expect(tracer.records.map(\.name) == ["outer", "group", "member"])
    #expect(tracer.records.map(\.group) == [nil, 0, 1])
    #expect(tracer.summary.operations == 1)
  }

  @Test func followedBeforeItWasPutIntoAGroupItIsInside() async throws {
    let (member, group) = (note("member"), GroupOperation().named("group"))
    tracer.trace([member, group])
    group.addOperation(member)
    OperationQueue().addOperation(group)
    await group.finished()
    #expect(try record("member").group == record("group").id)
  }

  @Test func theGraphHasTheDurations() async {
    let group = importer()
    tracer.trace(group)
    await run(group, delays: [1, 1, 1])
    #expect(tracer.graph.criticalPath?.names == ["Download", "Parse"])
    #expect(tracer.graph.criticalPath?.duration == .milliseconds(30))
    #expect(tracer.graph.nodes.map(\.state) == [.failed, .finished, .finished, .failed, .cancelled])
    #expect(tracer.graph.cycle == nil)
  }
}
