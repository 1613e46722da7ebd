import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What a `StallReport` promises, from its interface alone: every kind of stall is caused for real.
@Suite(.timeLimit(.minutes(5)))
struct StallReportContractTests {
  private let queue = OperationQueue().named("A")
  private let domain = ExclusivityDomain()

  private func operation(_ name: String) -> AsyncOperation { AsyncOperation().named(name) }

  /// By Foundation's own verb.
  private func add(_ operation: Operation, to queue: OperationQueue) { queue.addOperation(operation) }

  private func begun(_ operations: AsyncOperation...) async {
    for operation in operations { while !operation.isExecuting { await Task.yield() } }
  }

  // MARK: The report

  @Test func ofNothingItSaysSo() {
    #expect(queue.stallReport().entries.isEmpty && queue.stallReport().roots.isEmpty)
    #expect("\(queue.stallReport())".contains("“A”"))
    #expect(OperationQueue().stallReport().entries.isEmpty)
  }

  @Test func ofAGroupThatHasFinishedItSaysSo() async {
    let group = GroupOperation([operation("a")]).named("group")
    queue.addOperation(group)
    await group.finished()
    #expect(group.stallReport().entries.isEmpty && "\(group.stallReport())".contains("“group”"))
  }

  @Test func itSurvivesJSON() async throws {
    let (held, waiting) = (HeldOperation().named("held “x”\n\0\\"), operation("waiting"))
    held ==> waiting
    queue.addOperations([held, waiting])
    await held.begun.opened()
    let report = queue.stallReport()
    let decoded = try JSONDecoder().decode(StallReport.self, from: JSONEncoder().encode(report))
    #expect(decoded == report && "\(decoded)" == "\(report)" && decoded.entries.first?.elapsed != nil)
    let cause = try JSONDecoder().decode([StallReport.Cause].self, from: Data(#"["executing", "fromTheFuture"]"#.utf8))
    #expect(cause[0] == .executing && cause[1].rawValue == "fromTheFuture")
    held.gate.open()
    await waiting.finished()
  }

  @Test func theTextHasALineForEachAndSaysHowManyMore() async {
    let suspended = OperationQueue.suspended()
    suspended.addOperations((0..<500).map { operation("operation \($0)") })
    let report = suspended.stallReport()
    let lines = "\(report)".split(separator: "\n")
    #expect(report.entries.count == 500 && lines.count < 500 && lines.last?.contains("more") == true)
    suspended.isSuspended = false
    await suspended.finished()
  }

  @Test func aNameInLinesIsNoLineOfItsOwn() {
    let (lost, waiting) = (operation("lost\n“x” has been executing"), operation("waiting"))
    lost ==> waiting
    queue.addOperation(waiting)
    let lines = "\(queue.stallReport())".split(separator: "\n")
    waiting.cancel()
    #expect(lines.count == 3, "\(lines)")
  }

  // MARK: Never added

  @Test func aDependencyThatWasNeverAddedIsTheRootOfAllThatWaitForIt() async throws {
    let (login, upload, log) = (operation("login"), operation("upload"), operation("log"))
    login ==> upload ==> log
    queue.addOperations([log, upload])
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation) == ["login", "upload", "log"])
    #expect(report.entries.allSatisfy { $0.cause == .notEnqueued } && report.roots.map(\.operation) == ["login"])
    #expect(report.entries.map(\.root) == [nil, "login", "login"])
    #expect(report.entries.map(\.waitsFor) == [[], ["login"], ["upload"]])
    #expect(report.entries.map(\.place) == [nil, "A", "A"])
    queue.addOperation(login)
    await log.finished()
  }

  @Test func nestedGroupsThatWereNeverAddedAreTheRoot() async throws {
    let member = operation("member")
    let inner = GroupOperation([member]).named("inner")
    let outer = GroupOperation([inner]).named("outer")
    let waiting = operation("waiting")
    member ==> waiting
    queue.addOperation(waiting)
    let report = queue.stallReport()
    let entry = try report.entry("waiting")
    #expect(entry.cause == .notEnqueued && entry.root == "outer" && entry.description.contains("“outer”"))
    #expect(report.roots.map(\.operation) == ["outer"], "\(report)")
    #expect(inner.stallReport().entries.map(\.root) == [nil, "outer", "outer"])
    #expect(inner.stallReport().roots.map(\.operation) == ["outer"])
    #expect(outer.stallReport().roots.map(\.operation) == ["outer"])
    queue.addOperation(outer)
    await waiting.finished()
  }

  @Test func aMemberWaitsForWhatWasNeverAdded() async throws {
    let suspended = OperationQueue.suspended()
    let (lost, member) = (operation("lost"), operation("member"))
    lost ==> member
    let group = GroupOperation([member]).named("group")
    suspended.addOperation(group)
    for report in [suspended.stallReport(), group.stallReport()] {
      #expect(try report.entry("member").root == "lost")
      #expect(try report.entry("group").root == "lost")
      for entry in report.entries {
        #expect(!entry.waitsFor.contains(entry.operation), "\(entry.operation) waits for itself")
        #expect(Set(entry.waitsFor).count == entry.waitsFor.count)
      }
    }
    suspended.isSuspended = false
    queue.addOperation(lost)
    await group.finished()
  }

  @Test func ofPlainOperationsItSaysThatItCannotSee() async throws {
    let elsewhere = OperationQueue.suspended().named("elsewhere")
    let (a, b) = (BlockOperation {}.named("a"), BlockOperation {}.named("b"))
    a ==> b
    add(a, to: elsewhere)
    add(b, to: queue)
    #expect(try queue.stallReport().entry("a").description.contains("plain Foundation operation"))
    let report = queue.stallReport(alsoIn: [elsewhere])
    #expect(try report.entry("a").cause == .suspended && report.entry("b").root == "a")
    #expect(try report.entry("a").place == "elsewhere")
    elsewhere.isSuspended = false
    await b.finished()
  }

  @Test func ofOursThatFoundationAddedItSaysThatItCannotSee() async throws {
    let elsewhere = OperationQueue.suspended().named("elsewhere")
    let (a, b) = (operation("a"), operation("b"))
    a ==> b
    add(a, to: elsewhere)
    queue.addOperation(b)
    #expect(try queue.stallReport().entry("a").description.contains("Foundation"))
    #expect(try queue.stallReport(alsoIn: [elsewhere]).entry("a").cause == .suspended)
    #expect(try elsewhere.stallReport().entry("a").cause == .suspended)
    elsewhere.isSuspended = false
    await b.finished()
  }

  // MARK: Suspended

  @Test(arguments: [false, true]) func aChainOverThreeQueuesEndsAtTheSuspendedOne(isPlain: Bool) async throws {
    let (middle, last) = (OperationQueue.limited(to: 1).named("B"), OperationQueue.suspended().named("C"))
    let operations = ["x", "y", "z"].map { isPlain ? BlockOperation {}.named($0) : operation($0) }
    operations[0] ==> operations[1] ==> operations[2]
    for (operation, queue) in zip(operations, [last, middle, queue]) { queue.addOperations([operation]) }
    let report = queue.stallReport(alsoIn: [middle, last])
    #expect(report.entries.map(\.operation) == ["x", "y", "z"] && report.entries.map(\.place) == ["C", "B", "A"])
    #expect(report.entries.allSatisfy { $0.cause == .suspended && $0.description.contains("“C” is suspended") })
    #expect(report.entries.map(\.root) == [nil, "x", "x"])
    last.isSuspended = false
    await operations[2].finished()
  }

  @Test func membersOfASuspendedGroup() async throws {
    let group = GroupOperation([operation("member")]).named("group")
    group.isSuspended = true
    queue.addOperation(group)
    await begun(group)
    for report in [queue.stallReport(), group.stallReport()] {
      #expect(report.entries.map(\.operation) == ["member", "group"])
      #expect(try report.entry("member").description.contains("“group” is suspended"))
    }
    group.isSuspended = false
    await group.finished()
  }

  @Test func aSuspendedGroupWithoutMembers() async throws {
    let group = GroupOperation([]).named("group")
    group.isSuspended = true
    queue.addOperation(group)
    await begun(group)
    #expect(try queue.stallReport().entry("group").cause == .suspended)
    group.cancel()
    await group.finished()
  }

  @Test func aLimitOfZero() async throws {
    let (none, group) = (OperationQueue.limited(to: 0).named("none"), GroupOperation([operation("b")]).named("group"))
    group.maxConcurrentOperationCount = 0
    none.addOperation(operation("a"))
    queue.addOperation(group)
    await begun(group)
    #expect(try none.stallReport().entry("a").cause == .suspended && queue.stallReport().entry("b").cause == .suspended)
    #expect(try none.stallReport().entry("a").description.contains("“none”"))
    none.maxConcurrentOperationCount = 1
    group.maxConcurrentOperationCount = 1
    await none.finished()
    await group.finished()
  }

  @Test func cancelledOnesInASuspendedQueueWaitForItToo() async throws {
    let suspended = OperationQueue.suspended()
    let (lost, a, b) = (operation("lost"), operation("a"), BlockOperation {}.named("b"))
    lost ==> a
    suspended.addOperations([a, b])
    a.cancel()
    b.cancel()
    let report = suspended.stallReport()
    #expect(report.entries.map(\.operation) == ["a", "b"] && report.entries.allSatisfy { $0.cause == .suspended })
    suspended.isSuspended = false
    await suspended.finished()
  }

  // MARK: Slots

  @Test func everySlotIsTakenByWhomAndSinceWhen() async throws {
    let narrow = OperationQueue.limited(to: 2).named("narrow")
    let held = [HeldOperation().named("one"), HeldOperation().named("two")]
    narrow.addOperations(held)
    for operation in held { await operation.begun.opened() }
    let (waiting, after) = (operation("waiting"), operation("after"))
    waiting ==> after
    narrow.addOperation(waiting)
    queue.addOperation(after)
    let entry = try narrow.stallReport().entry("waiting")
    #expect(entry.cause == .saturated && Set(entry.waitsFor) == ["one", "two"] && entry.place == "narrow")
    #expect(entry.description.contains("“one” for ") && entry.description.contains("“two” for "))
    #expect(try queue.stallReport().entry("after").cause == .saturated)
    #expect(try queue.stallReport().entry("one").elapsed != nil)
    for operation in held { operation.gate.open() }
    await after.finished()
  }

  @Test func ofPlainOperationsItDoesNotKnowSinceWhen() async throws {
    let narrow = OperationQueue.limited(to: 1)
    let (begun, end) = (Gate(), Gate())
    let blocking = BlockOperation {
      begun.open()
      end.pass()
    }.named("blocking")
    add(blocking, to: narrow)
    await begun.opened()
    narrow.addOperation(operation("waiting"))
    let report = narrow.stallReport()
    #expect(try report.entry("blocking").elapsed == nil && report.entry("blocking").cause == .executing)
    #expect(try report.entry("waiting").waitsFor == ["blocking"])
    end.open()
    await narrow.finished()
  }

  @Test func aMemberWaitsForAnOperationBehindItsGroupInAQueueOfOne() async throws {
    let narrow = OperationQueue.limited(to: 1).named("narrow")
    let (behind, member) = (operation("behind"), operation("member"))
    behind ==> member
    let group = GroupOperation([member]).named("group")
    narrow.addOperations([group, behind])
    await begun(group)
    for report in [narrow.stallReport(), group.stallReport()] {
      #expect(report.entries.count == 3 && report.entries.allSatisfy { $0.cause == .cycle })
      for entry in report.entries {
        for name in ["group", "member", "behind"] { #expect(entry.description.contains("“\(name)”"), "\(entry)") }
      }
    }
    narrow.cancelAllOperations()
    await narrow.finished()
  }

  @Test func theSameInAGroupOfOne() async throws {
    let (behind, member) = (operation("behind"), operation("member"))
    behind ==> member
    let nested = GroupOperation([member]).named("nested")
    let group = GroupOperation([nested, behind]).named("group")
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    await begun(nested)
    #expect(group.stallReport().entries.allSatisfy { $0.cause == .cycle })
    group.cancel()
    await group.finished()
  }

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// In a process of its own: it must not end the program.
  @Test func whoNeedsAnyOfTwoSlotsIsAsWellOffAsWithTheBest() async {
    await #expect(processExitsWith: .success) {
      let narrow = OperationQueue.limited(to: 2)
      let (behind, member) = (AsyncOperation().named("behind"), AsyncOperation().named("member"))
      behind ==> member
      let (group, long) = (GroupOperation([member]).named("group"), HeldOperation().named("long"))
      narrow.addOperations([group, long, behind])
      await long.begun.opened()
      while !group.isExecuting { await Task.yield() }
      let entry = try narrow.stallReport().entry("behind")
      #expect(entry.cause == .saturated && Set(entry.waitsFor) == ["group", "long"], "\(entry)")
      long.gate.open()
      await group.finished()
    }
  }
  #endif

  @Test func ifBothSlotsAreInCyclesNobodyIsAboutToFinish() async throws {
    let narrow = OperationQueue.limited(to: 2)
    let (behind, members) = ([operation("b1"), operation("b2")], [operation("m1"), operation("m2")])
    for (one, member) in zip(behind, members) { one ==> member }
    let groups = members.enumerated().map { GroupOperation([$1]).named("group \($0)") }
    narrow.addOperations(groups)
    await begun(groups[0], groups[1])
    narrow.addOperations(behind)
    let report = narrow.stallReport()
    #expect(report.entries.count == 6)
    for entry in report.entries {
      #expect(entry.cause == .cycle && entry.description.contains("in a cycle"), "\(entry)")
      #expect(!entry.description.contains("about to"), "\(entry)")
    }
    narrow.cancelAllOperations()
    await narrow.finished()
  }

  // MARK: Cycles

  @Test(arguments: [false, true]) func aCycleIsSpelledOut(isPlain: Bool) async throws {
    let other = OperationQueue().named("B")
    let ring = ["x", "y", "z"].map { isPlain ? Operation().named($0) : operation($0) }
    ring[0] ==> ring[1] ==> ring[2] ==> ring[0]
    let after = operation("after")
    ring[2] ==> after
    add(after, to: queue)
    queue.addOperations([ring[0], ring[1]])
    other.addOperations([ring[2]])
    let report = queue.stallReport(alsoIn: [other])
    #expect(Set(report.entries.prefix(3).map(\.operation)) == ["x", "y", "z"] && report.entries.count == 4)
    #expect(report.entries.allSatisfy { $0.cause == .cycle })
    #expect(try report.entry("x").description.contains("“x” waits for “z”, which waits for “y”, which waits for “x”"))
    #expect(try ["x", "y", "z"].contains(report.entry("after").root ?? ""))
    #expect(!report.roots.isEmpty, "somebody must be at the bottom of it")
    // A plain operation whose dependency is removed never gets ready on Linux, so nobody waits for these.
    after.removeDependency(ring[2])
    await after.finished()
    for operation in ring {
      operation.cancel()
      for dependency in operation.dependencies { operation.removeDependency(dependency) }
    }
  }

  @Test func aMemberThatWaitsForItsOwnGroup() async throws {
    let suspended = OperationQueue.suspended()
    let (group, member) = (GroupOperation([]).named("group"), operation("member"))
    group ==> member
    group.addOperation(member)
    suspended.addOperation(group)
    let report = suspended.stallReport()
    #expect(report.entries.allSatisfy { $0.cause == .cycle } && report.entries.count == 2)
    #expect(try report.entry("group").waitsFor == ["member"] && report.entry("member").waitsFor == ["group"])
    suspended.isSuspended = false
    await group.finished()
  }

  // MARK: Keys

  @Test func aKeyAndWhoHoldsIt() async throws {
    let (holder, foreign) = (HeldOperation().named("holder"), GroupOperation([BlockOperation {}]).named("plain"))
    queue.addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    queue.addOperation(operation("waiting").exclusive("key", "other", in: domain))
    queue.addOperation(foreign.exclusive("key", in: domain))
    queue.addOperation(operation("in line").exclusive("other", in: domain))
    let report = queue.stallReport()
    for name in ["waiting", "plain"] {
      let entry = try report.entry(name)
      #expect(entry.cause == .exclusivity && entry.waitsFor.contains("holder"))
      #expect(entry.description.contains("“key”") && entry.description.contains("“holder”"))
    }
    #expect(try report.entry("in line").description.contains("behind “waiting”"))
    #expect(try report.entry("holder").cause == .executing && domain.holders(of: "key") == ["holder"])
    holder.gate.open()
    await queue.finished()
  }

  @Test func aMemberWaitsForAKeyThatIsHeldOutside() async throws {
    let holder = HeldOperation().named("holder")
    queue.addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    let group = GroupOperation([]).named("group")
    group.addOperation(operation("member").exclusive("key", in: domain))
    queue.addOperation(group)
    while domain.waiting(for: "key").isEmpty { await Task.yield() }
    #expect(try group.stallReport().entry("member").waitsFor == ["holder"])
    #expect(try group.stallReport().entry("group").cause == .exclusivity)
    holder.gate.open()
    await group.finished()
  }

  @Test func twoGroupsWantEachOthersKeysByWayOfOthers() async throws {
    let (x, y, m1, m2) = (operation("x"), operation("y"), operation("m1"), operation("m2"))
    x ==> m1
    y ==> m2
    let groups = [GroupOperation([m1]).named("G1"), GroupOperation([m2]).named("G2")]
    queue.addOperation(groups[0].exclusive("k1", in: domain))
    queue.addOperation(groups[1].exclusive("k2", in: domain))
    await begun(groups[0], groups[1])
    queue.addOperation(x.exclusive("k2", in: domain))
    queue.addOperation(y.exclusive("k1", in: domain))
    let report = queue.stallReport()
    #expect(report.entries.count == 6 && report.entries.allSatisfy { $0.cause == .cycle })
    let entry = try report.entry("x")
    for part in ["the key “k2”", "“G2”", "“m2”", "“y”", "the key “k1”", "“G1”", "“m1”"] {
      #expect(entry.description.contains(part))
    }
    queue.cancelAllOperations()
    await queue.finished()
  }

  // MARK: Executing, or nearly

  @Test func aConditionThatIsBeingEvaluated() async throws {
    let (asked, answer) = (Gate(), Gate())
    let (upload, after) = (operation("upload"), operation("after"))
    upload.addCondition(
      OperationCondition(name: "signed in") { _ in
        asked.open()
        await answer.opened()
      }
    )
    upload ==> after
    queue.addOperations([upload, after])
    await asked.opened()
    let entry = try queue.stallReport().entry("upload")
    #expect(entry.cause == .condition && entry.description.contains("“signed in”") && entry.elapsed != nil)
    #expect(try queue.stallReport().entry("after").root == "upload")
    answer.open()
    await after.finished()
  }

  @Test func oneThatExecutesAndOneThatWasCancelledAndDoesNotFinish() async throws {
    let held = HeldOperation().named("held")
    queue.addOperation(held)
    await held.begun.opened()
    let before = try queue.stallReport().entry("held")
    #expect(before.cause == .executing && before.elapsed != nil && before.waitsFor.isEmpty && before.root == nil)
    held.cancel()
    #expect(try queue.stallReport().entry("held").description.contains("cancelled"))
    held.gate.open()
    await held.finished()
  }

  @Test func startedByHand() async throws {
    let (held, after) = (HeldOperation().named("held"), operation("after"))
    held ==> after
    queue.addOperation(after)
    await start(held)
    #expect(
      try queue.stallReport().entry("after").root == "held" && queue.stallReport().entry("held").cause == .executing
    )
    held.gate.open()
    await after.finished()
  }

  @Test func aDelayThatHasNotPassed() async throws {
    let (clock, delay) = (ManualClock(), DelayOperation(.seconds(90)).named("delay"))
    delay.clock = clock
    queue.addOperation(delay)
    await clock.waitForSleepers()
    clock.advance(by: .seconds(60))
    #expect(try queue.stallReport().entry("delay").cause == .executing)
    clock.advance(by: .seconds(30))
    await delay.finished()
  }

  @Test func aRetryBetweenTwoAttempts() async throws {
    let (clock, after) = (ManualClock(), operation("after"))
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(60))) { number in
      ResultOperation { if number < 2 { throw TestError("no") } else { number } }
    }.named("retry")
    retry.clock = clock
    retry ==> after
    queue.addOperations([retry, after])
    await clock.waitForSleepers()
    #expect(try queue.stallReport().entry("retry").cause == .backingOff)
    #expect(try queue.stallReport().entry("after").root == "retry")
    clock.advance(by: .seconds(60))
    await after.finished()
  }

  @Test func anAttemptOfARetry() async throws {
    let held = HeldResult().named("attempt")
    let retry = RetryOperation(attempts: 1) { _ in held }.named("retry")
    queue.addOperation(retry)
    await held.begun.opened()
    #expect(try queue.stallReport().entry("retry").root == "attempt")
    held.gate.open()
    await retry.finished()
  }

  @Test func onTheMainActor() async throws {
    let dialog = Dialog().named("dialog")
    queue.addOperation(dialog)
    await dialog.shown.opened()
    #expect(try queue.stallReport().entry("dialog").cause == .executing)
    dialog.finish()
    await dialog.finished()
  }

  @Test func onTheMainQueue() async throws {
    let (held, after) = (HeldOperation().named("held"), operation("after"))
    held ==> after
    OperationQueue.main.addOperation(held)
    queue.addOperation(after)
    await held.begun.opened()
    #expect(try queue.stallReport().entry("held").place == "main")
    #expect(try OperationQueue.main.stallReport().entry("held").cause == .executing)
    held.gate.open()
    await after.finished()
  }

  @Test func theQueueOfAScheduler() async throws {
    let scheduler = SerialScheduler(name: "disk")
    let end = await scheduler.held()
    let waiting = operation("waiting")
    scheduler.queue.addOperation(waiting)
    let entry = try scheduler.queue.stallReport().entry("waiting")
    #expect(entry.cause == .saturated && entry.place == "disk" && entry.description.contains("events"))
    end.open()
    await waiting.finished()
    scheduler.isSuspended = true
    let next = operation("next")
    scheduler.queue.addOperation(next)
    #expect(try scheduler.queue.stallReport().entry("next").cause == .suspended)
    scheduler.isSuspended = false
    await next.finished()
  }

  @Test func oneThatIsNotReadyThoughItWaitsForNothing() async throws {
    let lazy = LazyOperation().named("lazy")
    add(lazy, to: queue)
    #expect(try queue.stallReport().entry("lazy").cause == .notReady)
    lazy.wake()
    await lazy.finished()
  }

  @Test func behindABarrier() async throws {
    let held = HeldOperation().named("held")
    queue.addOperation(held)
    await held.begun.opened()
    queue.addBarrierBlock {}
    let behind = operation("behind")
    queue.addOperation(behind)
    let entry = try queue.stallReport().entry("behind")
    #expect(entry.cause == .notReady && entry.description.contains("barrier"))
    #expect(!entry.description.contains("overridden"), "isReady is final in ours")
    held.gate.open()
    await behind.finished()
  }

  @Test func ofSeveralWaitsTheWorstIsTheCauseAndAllAreNamed() async throws {
    let suspended = OperationQueue.suspended()
    let (held, x, lost, last) = (HeldOperation().named("held"), operation("x"), operation("lost"), operation("last"))
    [held, x, lost] ==> last
    suspended.addOperation(x)
    queue.addOperations([held, last])
    await held.begun.opened()
    let entry = try queue.stallReport().entry("last")
    #expect(entry.cause == .notEnqueued && entry.root == "lost" && Set(entry.waitsFor) == ["held", "x", "lost"])
    #expect(
      try queue.stallReport().entry("x").cause == .suspended && queue.stallReport().entry("held").cause == .executing
    )
    suspended.isSuspended = false
    queue.addOperation(lost)
    held.gate.open()
    await last.finished()
  }

  // MARK: Large ones

  @Test func aChainOf8000() {
    let operations = (0..<8000).map { operation("\($0)") }
    for (a, b) in zip(operations, operations.dropFirst()) { a ==> b }
    let group = GroupOperation(operations).named("group")
    #expect(group.stallReport().entries.count == 8001 && group.stallReport().roots.map(\.operation) == ["group"])
  }

  @Test func groupsNested8000Deep() {
    var inner = operation("leaf")
    for index in 0..<8000 { inner = GroupOperation([inner]).named("\(index)") }
    let report = (inner as? GroupOperation)?.stallReport()
    #expect(report?.entries.count == 8001 && report?.entries.last?.root == "7999")
    #expect((report?.entries.last?.description.utf8.count ?? 0) < 1000)
  }

  // MARK: Asking

  /// Everything that is at work at once, with a hook at every station, in an order that is certain.
  private func run(asking ask: @escaping @Sendable (OperationQueue, GroupOperation) -> Void) async -> [String] {
    let (journal, domain, clock) = (Journal<String>(), ExclusivityDomain(), ManualClock())
    let queue = OperationQueue.limited(to: 1)
    let group = GroupOperation([]).named("group")
    group.maxConcurrentOperationCount = 1
    group.clock = clock
    var members: [Operation] = []
    for index in 0..<60 {
      let member: Operation
      if index % 5 == 0 {
        member = BlockOperation {
          journal.write("\(index)")
          ask(queue, group)
        }
      } else {
        let ours = AsyncBlockOperation { operation in
          journal.write("\(index)")
          ask(queue, group)
          operation.finish()
          ask(queue, group)
        }
        ours.addObserver(
          OperationObserver(
            didStart: { _ in ask(queue, group) },
            didCancel: { _ in ask(queue, group) },
            didFinish: { _ in
              journal.write("end of \(index)")
              ask(queue, group)
            }
          )
        )
        if index % 7 == 0 { ours.addCondition(OperationCondition(name: "asking") { _ in ask(queue, group) }) }
        if index == 59 { ours.cancel() }
        member = ours
      }
      if let last = members.last { last ==> member }
      members.append(member)
      if index % 3 == 0 { (member as? AsyncOperation)?.exclusive("key", in: domain) }
      group.addOperation(member)
      ask(queue, group)
    }
    queue.addOperation(group.exclusive("outer", in: domain))
    let after = AsyncBlockOperation { operation in
      journal.write("after")
      ask(queue, group)
      operation.finish()
    }
    queue.addOperation(after.exclusive("outer", in: domain))
    ask(queue, group)
    await after.finished()
    ask(queue, group)
    return journal.entries + [
      "\(group.isSuccessful), \(group.errors.count), \(domain.holders(of: "key").first ?? "free")"
    ]
  }

  @Test func askingAtEveryStationChangesNothing() async {
    let quiet = await run { _, _ in }
    let asked = await run { queue, group in _ = (queue.stallReport(), group.stallReport(), OperationGraph([group])) }
    #expect(quiet == asked && quiet.count > 100)
  }

  @Test func askingFromOtherThreadsAllTheTimeChangesNothing() async {
    let quiet = await run { _, _ in }
    for _ in 0..<10 {
      let (end, subject) = (Gate(), Subject())
      async let asking = onThread {
        while !end.isOpen {
          guard let (queue, group) = subject.value else { continue }
          for report in [queue.stallReport(), group.stallReport()] {
            #expect(report.entries.allSatisfy { !$0.description.isEmpty && $0.cause != .cycle }, "\(report)")
          }
        }
      }
      let asked = await run { subject.set($0, $1) }
      end.open()
      _ = await asking
      #expect(asked == quiet)
    }
  }

  @Test func operationsThatFinishWhileOneAsks() async {
    let end = Gate()
    async let asking = onThread { [queue] in
      while !end.isOpen {
        let report = queue.stallReport()
        #expect(report.entries.allSatisfy { ![.cycle, .suspended, .notEnqueued].contains($0.cause) }, "\(report)")
      }
    }
    for round in 0..<200 {
      let operations = (0..<20).map { operation("\(round).\($0)") }
      for (a, b) in zip(operations, operations.dropFirst()) { a ==> b }
      queue.addOperations(operations)
      await operations[19].finished()
    }
    end.open()
    _ = await asking
  }
}

extension StallReport {
  fileprivate func entry(_ name: String) throws -> Entry {
    try #require(entries.first { $0.operation == name }, "no “\(name)” in: \(self)")
  }
}

extension OperationQueue {
  fileprivate func named(_ name: String) -> Self {
    self.name = name
    return self
  }
}

/// What other threads ask.
private final class Subject: Sendable {
  private let state = Locked<(OperationQueue, GroupOperation)?>(nil)

  var value: (OperationQueue, GroupOperation)? { state.withLock { $0 } }

  func set(_ queue: OperationQueue, _ group: GroupOperation) { state.withLock { $0 = (queue, group) } }
}

private final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
  let gate = Gate()
  let begun = Gate()

  override func execute() {
    begun.open()
    gate.whenOpen { [weak self] in self?.finish(returning: 1) }
  }
}

private final class Dialog: MainOperation, @unchecked Sendable {
  let shown = Gate()

  override func executeOnMain() { shown.open() }
}

/// A plain operation that decides itself when it is ready.
private final class LazyOperation: Operation, @unchecked Sendable {
  private let awake = Locked(false)

  override var isReady: Bool { awake.withLock { $0 } && super.isReady }

  func wake() {
    willChangeValue(for: \.isReady)
    awake.withLock { $0 = true }
    didChangeValue(for: \.isReady)
  }
}
