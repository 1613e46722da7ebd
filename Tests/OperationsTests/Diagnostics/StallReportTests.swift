import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite struct StallReportTests {
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  private func queue(_ name: String, limit: Int = OperationQueue.defaultMaxConcurrentOperationCount) -> OperationQueue {
    let queue = OperationQueue.limited(to: limit)
    queue.name = name
    return queue
  }

  // MARK: Nothing

  @Test func aQueueWithNothingToDoHasNoEntries() async throws {
    let queue = queue("idle")
    try await queue.run(note("a"))
    await queue.finished()
    #expect(queue.stallReport().entries.isEmpty)
    #expect(queue.stallReport().description == "Nothing is left to be done in the queue “idle”.")
  }

  // MARK: Dependencies

  @Test func aDependencyThatWasNeverAddedIsTheRootOfAllThatFollow() async {
    let (missing, first, second, third) = (note("missing"), note("first"), note("second"), note("third"))
    missing ==> first ==> second ==> third
    let queue = queue("sync")
    queue.addOperations([third, second, first])
    let report = queue.stallReport()
    #expect(
      report.description == """
        4 operations have not finished, in the queue “sync” or where it waits:
        “missing” was never added to a queue or a group.
        “first” waits for “missing”, which was never added to a queue or a group.
        “second” waits for “first”, which waits for “missing”, which was never added to a queue or a group.
        “third” waits for “second”, which waits, by way of “first”, for “missing”, which was never added to a queue or a group.
        """
    )
    #expect(report.entries.map(\.operation) == ["missing", "first", "second", "third"])
    #expect(report.entries.allSatisfy { $0.cause == .notEnqueued })
    #expect(report.entries.map(\.waitsFor) == [[], ["missing"], ["first"], ["second"]])
    #expect(report.entries.map(\.root) == [nil, "missing", "missing", "missing"])
    #expect(report.entries.map(\.place) == [nil, "sync", "sync", "sync"])
    #expect(report.roots.map(\.operation) == ["missing"])
    queue.addOperation(missing)
    await queue.finished()
    #expect(journal.entries == ["missing", "first", "second", "third"])
  }

  @Test func theWorstOfSeveralDependenciesCounts() async {
    let (held, missing, last) = (HeldOperation().named("held"), note("missing"), note("last"))
    held ==> last
    missing ==> last
    let queue = queue("sync")
    queue.addOperations([held, last])
    await held.begun.opened()
    let entry = queue.stallReport()["last"]
    #expect(entry?.cause == .notEnqueued)
    #expect(entry?.waitsFor == ["held", "missing"])
    #expect(entry?.root == "missing")
    queue.addOperation(missing)
    held.gate.open()
    await queue.finished()
  }

  @Test func aDependencyInASuspendedQueueIsNamedWithTheQueue() async {
    let (load, show) = (note("load"), note("show"))
    load ==> show
    let (network, screen) = (queue("network"), queue("screen"))
    network.isSuspended = true
    network.addOperation(load)
    screen.addOperation(show)
    let report = screen.stallReport()
    #expect(report["show"]?.cause == .suspended)
    #expect(
      report["show"]?.description
        == "“show” waits for “load”, which cannot start because the queue “network” is suspended."
    )
    #expect(report["load"]?.place == "network")
    network.isSuspended = false
    await screen.finished()
  }

  @Test func anOperationThatWasCancelledAndNeverAddedHoldsUpItsDependents() async {
    let (missing, last) = (note("missing"), note("last"))
    missing ==> last
    missing.cancel()
    let queue = queue("sync")
    queue.addOperation(last)
    #expect(queue.stallReport()["last"]?.cause == .notEnqueued)
    queue.addOperation(missing)
    await queue.finished()
  }

  // MARK: Slots

  @Test func whoTakesTheSlotsIsNamedWithTheTime() async {
    let (held, next, last) = (HeldOperation().named("held"), note("next"), note("last"))
    let queue = queue("upload", limit: 1)
    queue.addOperations([held, next, last])
    await held.begun.opened()
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation) == ["held", "next", "last"])
    #expect(report.entries.map(\.cause) == [.executing, .saturated, .saturated])
    #expect(report.entries.map(\.waitsFor) == [[], ["held"], ["held"]])
    #expect(
      report["next"]?.description.hasPrefix("“next” waits for the slot of the queue “upload”, taken by “held” for ")
        == true
    )
    #expect(report["held"]?.elapsed != nil)
    held.gate.open()
    await queue.finished()
  }

  @Test func aDependencyInASaturatedQueueIsSaidToWaitForASlot() async {
    let (held, load, show) = (HeldOperation().named("held"), note("load"), note("show"))
    load ==> show
    let (network, screen) = (queue("network", limit: 1), queue("screen"))
    network.addOperations([held, load])
    screen.addOperation(show)
    await held.begun.opened()
    let entry = screen.stallReport()["show"]
    #expect(entry?.cause == .saturated)
    #expect(
      entry?.description.hasPrefix(
        "“show” waits for “load”, which waits for the slot of the queue “network”, taken by “held” for "
      ) == true
    )
    held.gate.open()
    await screen.finished()
  }

  @Test func oneSlotThatWillBeFreeIsEnough() async {
    let (held, missing, next) = (HeldOperation().named("held"), note("missing"), note("next"))
    let member = note("member")
    missing ==> member
    let group = GroupOperation([member]).named("group")
    let queue = queue("two", limit: 2)
    queue.addOperations([held, group, next] as [Operation])
    await held.begun.opened()
    await group.begun()
    #expect(queue.stallReport()["next"]?.cause == .saturated)
    held.gate.open()
    await next.finished()
    queue.addOperations([note("third"), note("fourth")])
    let elsewhere = OperationQueue()
    elsewhere.addOperation(missing)
    await queue.finished()
  }

  @Test func aQueueThatExecutesNothingIsNamed() async {
    let queue = queue("closed", limit: 0)
    queue.addOperation(note("a"))
    let entry = queue.stallReport()["a"]
    #expect(entry?.cause == .suspended)
    #expect(entry?.description == "“a” cannot start because maxConcurrentOperationCount of the queue “closed” is 0.")
    queue.maxConcurrentOperationCount = 1
    await queue.finished()
  }

  @Test func aQueueWithoutANameIsNotCalledByItsAddress() async {
    let queue = OperationQueue.suspended()
    queue.addOperation(note("a"))
    #expect(queue.stallReport()["a"]?.description == "“a” cannot start because its queue is suspended.")
    #expect(queue.stallReport()["a"]?.place == nil)
    queue.isSuspended = false
    await queue.finished()
  }

  // MARK: Cycles

  @Test func aCycleIsSpelledOut() async {
    let (a, b, c, d) = (note("a"), note("b"), note("c"), note("d"))
    a ==> b ==> c ==> a
    c ==> d
    let queue = queue("round")
    queue.addOperations([a, b, c, d])
    let report = queue.stallReport()
    #expect(report.entries.allSatisfy { $0.cause == .cycle })
    #expect(
      report["a"]?.description == "“a” waits for “c”, which waits for “b”, which waits for “a”, in a cycle."
    )
    #expect(
      report["d"]?.description
        == "“d” waits for “c”, which waits for “b”, which waits for “a”, which waits for “c”, in a cycle."
    )
    #expect(report.entries.last?.operation == "d")
    a.removeDependency(c)
    await queue.finished()
  }

  @Test func aCycleThroughASlotIsSpelledOut() async {
    let (member, later) = (note("member"), note("later"))
    later ==> member
    let group = GroupOperation([member]).named("group")
    let queue = queue("one", limit: 1)
    queue.addOperations([group, later])
    await group.begun()
    let report = queue.stallReport()
    #expect(report.entries.allSatisfy { $0.cause == .cycle })
    #expect(
      report["later"]?.description
        == "“later” waits for the slot of the queue “one”, taken by “group”, which waits for its member “member”, which waits "
        + "for “later”, in a cycle."
    )
    queue.maxConcurrentOperationCount = 2
    await queue.finished()
  }

  @Test func aCycleThroughAKeyIsSpelledOut() async {
    let (member, wanting) = (note("member"), note("wanting"))
    wanting ==> member
    let group = GroupOperation([member]).named("group")
    let queue = queue("sync")
    let domain = ExclusivityDomain()
    queue.addOperation(group.exclusive("k", in: domain))
    await group.begun()
    queue.addOperation(wanting.exclusive("k", in: domain))
    let report = queue.stallReport()
    #expect(
      report["wanting"]?.description
        == "“wanting” waits for the key “k”, held by “group”, which waits for its member “member”, which waits for “wanting”, "
        + "in a cycle."
    )
    #expect(report["wanting"]?.cause == .cycle)
    member.removeDependency(wanting)
    await queue.finished()
  }

  // MARK: Keys

  @Test func whoHoldsTheKeyIsNamed() async {
    let (held, waiting, after) = (HeldOperation().named("held"), note("waiting"), note("after"))
    waiting ==> after
    let queue = queue("alerts")
    let domain = ExclusivityDomain()
    queue.addOperation(held.exclusive("alert", in: domain))
    queue.addOperation(waiting.exclusive("alert", in: domain))
    queue.addOperation(after)
    await held.begun.opened()
    let report = queue.stallReport()
    #expect(report["waiting"]?.cause == .exclusivity)
    #expect(report["waiting"]?.waitsFor == ["held"])
    #expect(
      report["waiting"]?.description.hasPrefix(
        "“waiting” waits for the key “alert”, held by “held”, which has "
      ) == true
    )
    #expect(report["after"]?.cause == .exclusivity)
    #expect(report["after"]?.root == "held")
    held.gate.open()
    await queue.finished()
  }

  @Test func whoIsBeforeOneInTheLineForAKeyIsNamed() async {
    let (held, both, last) = (HeldOperation().named("held"), note("both"), note("last"))
    let queue = queue("alerts")
    let domain = ExclusivityDomain()
    queue.addOperation(held.exclusive("a", in: domain))
    await held.begun.opened()
    queue.addOperation(both.exclusive("a", "b", in: domain))
    queue.addOperation(last.exclusive("b", in: domain))
    let entry = queue.stallReport()["last"]
    #expect(entry?.waitsFor == ["both"])
    #expect(
      entry?.description.hasPrefix(
        "“last” waits for the key “b” behind “both”, which waits for the key “a”, held by “held”, which has "
      ) == true
    )
    held.gate.open()
    await queue.finished()
  }

  @Test func aGroupOfAPlainOperationWaitsForTheKey() async {
    let held = HeldOperation().named("held")
    let queue = queue("alerts")
    let domain = ExclusivityDomain()
    queue.addOperation(held.exclusive("alert", in: domain))
    await held.begun.opened()
    queue.addOperation(GroupOperation([plain("plain", journal)]).named("group").exclusive("alert", in: domain))
    let report = queue.stallReport()
    #expect(report["group"]?.cause == .exclusivity && report["plain"]?.cause == .exclusivity)
    held.gate.open()
    await queue.finished()
  }

  @Test func theLimitOfTheKeyIsNamed() async {
    let held = (0..<2).map { HeldOperation().named("held \($0)") }
    let queue = queue("downloads")
    let domain = ExclusivityDomain()
    for operation in held {
      queue.addOperation(operation.limited("host", to: 2, in: domain))
      await operation.begun.opened()
    }
    queue.addOperation(note("waiting").limited("host", to: 4, in: domain))
    let entry = queue.stallReport()["waiting"]
    #expect(entry?.description.contains("waits for the key “host” (limit 2), held by “held ") == true)
    #expect(entry?.cause == .exclusivity && Set(entry?.waitsFor ?? []) == ["held 0", "held 1"])
    for operation in held { operation.gate.open() }
    await queue.finished()
  }

  @Test func aThrottledKeyIsNamed() async {
    let clock = ManualClock()
    let queue = queue("calls")
    let domain = ExclusivityDomain()
    for name in ["first", "second"] {
      let operation = note(name).throttled("api", to: 1, per: .seconds(1), in: domain)
      operation.clock = clock
      queue.addOperation(operation)
      // It begins at 0 s, and not after the clock has been moved.
      if name == "first" { await operation.finished() }
    }
    await clock.waitForSleepers(1)
    let entry = queue.stallReport()["second"]
    #expect(
      entry?.cause == .exclusivity && entry?.description == "“second” waits for its turn under the throttled key “api”."
    )
    clock.advance(by: .seconds(1))
    await queue.finished()
  }

  // MARK: Executing

  @Test func aConditionThatIsBeingEvaluatedIsNamed() async {
    let (operation, after) = (note("upload"), note("after"))
    operation ==> after
    let (begun, end) = (Gate(), Gate())
    operation.addCondition(OperationCondition(name: "met at once") { _ in })
    operation.addCondition(
      OperationCondition(name: "signed in") { _ in
        begun.open()
        await end.opened()
      }
    )
    let queue = queue("sync")
    queue.addOperations([operation, after])
    await begun.opened()
    let report = queue.stallReport()
    #expect(report["upload"]?.cause == .condition)
    #expect(report["upload"]?.elapsed != nil)
    #expect(
      report["upload"]?.description.hasPrefix(
        "“upload” has not started because its condition “signed in” is being evaluated"
      )
        == true
    )
    #expect(report["after"]?.cause == .condition)
    end.open()
    await queue.finished()
  }

  @Test func anOperationThatHasNotFinishedIsSaidToBeExecuting() async {
    let (held, after) = (HeldOperation().named("held"), note("after"))
    held ==> after
    let queue = queue("sync")
    queue.addOperations([held, after])
    await held.begun.opened()
    let report = queue.stallReport()
    #expect(report.entries.map(\.cause) == [.executing, .executing])
    #expect(report["held"]?.description.hasPrefix("“held” has ") == true)
    held.gate.open()
    await queue.finished()
  }

  @Test func onlyWhatMayForgetToFinishIsSuspectedOfIt() async {
    let end = Gate()
    let (source, target) = (BlockOperation {}.named("source"), BlockOperation {}.named("target"))
    let transform = TransformOperation { (number: Int) -> Int in
      end.pass()
      return number
    }
    transform.input = 1
    let held = HeldOperation().named("held")
    let queue = queue("sync")
    queue.addOperations([
      ResultOperation { end.pass() }.named("result"), transform.named("transform"), source,
      AdapterOperation(from: source, to: target) { _, _ in end.pass() }.named("adapter"), held,
    ])
    let names = ["result", "transform", "adapter", "held"]
    // The guess comes after a second.
    while !names.allSatisfy({ queue.stallReport()[$0]?.elapsed.map { $0 >= .seconds(1) } ?? false }) {
      try? await Task.sleep(for: .milliseconds(50))
    }
    let report = queue.stallReport()
    let suspected = names.filter { report[$0]?.description.contains("perhaps it never calls finish()") == true }
    #expect(suspected == ["held"])
    end.open()
    held.gate.open()
    queue.addOperation(target)
    await queue.finished()
  }

  @Test func aRetryBetweenTwoAttemptsPauses() async throws {
    let clock = ManualClock()
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(60))) { attempt in
      ResultOperation { if attempt == 1 { throw TestError("once") } }
    }.named("retry")
    retry.clock = clock
    let queue = queue("sync")
    queue.addOperation(retry)
    await clock.waitForSleepers()
    #expect(queue.stallReport()["retry"]?.cause == .backingOff)
    clock.advance(by: .seconds(60))
    try await retry.completed()
  }

  @Test func whoPausesTakesNoSlot() async {
    let clock = ManualClock()
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(60))) { attempt in
      ResultOperation { if attempt == 1 { throw TestError("once") } }
    }.named("retry")
    let (held, next) = (HeldOperation().named("held"), note("next"))
    let group = GroupOperation([retry, held, next]).named("group")
    group.maxConcurrentOperationCount = 1
    group.clock = clock
    let queue = queue("sync")
    queue.addOperation(group)
    await clock.waitForSleepers()
    await held.begun.opened()
    #expect(group.stallReport()["next"]?.waitsFor == ["held"])
    held.gate.open()
    await next.finished()
    clock.advance(by: .seconds(60))
    await queue.finished()
  }

  @Test func whatARetryTriesIsWhatItWaitsFor() async throws {
    let attempt = HeldAttempt().named("attempt")
    let retry = RetryOperation(attempts: 2) { _ in attempt }.named("retry")
    let queue = queue("sync")
    queue.addOperation(retry)
    await attempt.begun.opened()
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation) == ["attempt", "retry"])
    #expect(report["retry"]?.waitsFor == ["attempt"])
    attempt.finish(returning: ())
    try await retry.completed()
  }

  // MARK: Groups

  @Test func membersWaitForTheBeginningOfTheirGroup() async {
    let (missing, member) = (note("missing"), note("member"))
    let group = GroupOperation([member]).named("group")
    missing ==> group
    let queue = queue("sync")
    queue.addOperation(group)
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation).first == "missing")
    #expect(
      report["member"]?.description
        == "“member” cannot begin before its group “group”, which waits for “missing”, which was never added to a queue or a "
        + "group."
    )
    #expect(report["group"]?.waitsFor == ["missing"])
    queue.addOperation(missing)
    await queue.finished()
  }

  @Test func aGroupCanBeAskedItself() async {
    let (held, member) = (HeldOperation().named("held"), note("member"))
    held ==> member
    let group = GroupOperation([held, member]).named("group")
    let queue = queue("sync")
    queue.addOperations([group, note("unrelated")])
    await held.begun.opened()
    let report = group.stallReport()
    #expect(report.entries.map(\.operation).sorted() == ["group", "held", "member"])
    #expect(
      report.description.hasPrefix(
        "3 operations have not finished, in the group “group” or where it waits:\n“held” has"
      )
    )
    #expect(report["group"]?.waitsFor.sorted() == ["held", "member"])
    held.gate.open()
    await queue.finished()
    #expect(group.stallReport().description == "Nothing is left to be done in the group “group”.")
  }

  @Test func aGroupThatWasNeverAddedSaysSo() {
    let group = GroupOperation([note("member")]).named("group")
    let report = group.stallReport()
    #expect(report["group"]?.description == "“group” was never added to a queue or a group.")
    #expect(
      report["member"]?.description
        == "“member” cannot begin before its group “group”, which was never added to a queue or a group."
    )
  }

  @Test func suspendedAndFullGroupsAreNamed() async {
    let (held, next) = (HeldOperation().named("held"), note("next"))
    let group = GroupOperation([held, next]).named("group")
    group.maxConcurrentOperationCount = 1
    let queue = queue("sync")
    queue.addOperation(group)
    await held.begun.opened()
    #expect(group.stallReport()["next"]?.cause == .saturated)
    group.isSuspended = true
    #expect(group.stallReport()["next"]?.description == "“next” cannot start because the group “group” is suspended.")
    group.isSuspended = false
    held.gate.open()
    await queue.finished()
  }

  @Test func aSuspendedGroupWithoutMembersWaitsForSome() async {
    let group = GroupOperation().named("group")
    group.isSuspended = true
    let queue = queue("sync")
    queue.addOperation(group)
    await group.begun()
    #expect(queue.stallReport()["group"]?.cause == .suspended)
    #expect(queue.stallReport()["group"]?.description == "“group” is suspended, and waits for members.")
    group.isSuspended = false
    await queue.finished()
  }

  // MARK: Plain operations

  @Test func plainOperationsOfTheQueueAreSeen() async {
    let (begun, end) = (Gate(), Gate())
    let held = BlockOperation {
      begun.open()
      end.pass()
    }.named("held")
    let (next, after) = (plain("next", journal), plain("after", journal))
    after.addDependency(next)
    let queue = queue("plain", limit: 1)
    queue.addOperations([held, next, after])
    await begun.opened()
    let report = queue.stallReport()
    #expect(
      report["held"]?.description == "“held” is executing (Foundation does not record since when)."
    )
    #expect(report["next"]?.description == "“next” waits for the slot of the queue “plain”, taken by “held”.")
    #expect(report["after"]?.root == "held")
    end.open()
    await queue.finished()
  }

  @Test func whereAPlainOperationIsCanBeSaid() async {
    let elsewhere = queue("elsewhere")
    elsewhere.isSuspended = true
    let (load, show) = (plain("load", journal), note("show"))
    load ==> show
    elsewhere.addOperation(load)
    let queue = queue("screen")
    queue.addOperation(show)
    let guess = queue.stallReport()["load"]
    #expect(guess?.cause == .notEnqueued)
    #expect(guess?.description.contains("none of the searched queues") == true)
    #expect(queue.stallReport(alsoIn: [elsewhere])["show"]?.cause == .suspended)
    // One of ours that is there leads to the queue.
    let lead = note("lead")
    elsewhere.addOperation(lead)
    lead ==> show
    #expect(queue.stallReport()["load"]?.cause == .suspended)
    elsewhere.isSuspended = false
    await queue.finished()
  }

  @Test func theMainQueueIsLookedIntoAnyhow() async {
    let held = HeldOperation().named("held")
    let (beside, show) = (plain("beside", journal), note("show"))
    beside.addDependency(held)
    beside ==> show
    let queue = queue("screen")
    queue.addOperation(show)
    OperationQueue.main.addOperation(beside)
    #expect(queue.stallReport()["beside"]?.place == "main")
    queue.addOperation(held)
    await held.begun.opened()
    held.gate.open()
    await queue.finished()
  }

  @Test func anOverriddenReadinessIsNamed() async {
    let operation = NeverReady().named("moody")
    let queue = queue("sync")
    queue.addOperation(operation)
    let entry = queue.stallReport()["moody"]
    #expect(entry?.cause == .notReady)
    #expect(entry?.description.contains("its isReady is overridden") == true)
    operation.cancel()
    operation.allow()
    await queue.finished()
  }

  @Test func anOperationBehindABarrierBlockIsNotReady() async {
    let (held, after) = (HeldOperation().named("held"), note("after"))
    let queue = queue("sync")
    queue.addOperation(held)
    await held.begun.opened()
    queue.addBarrierBlock {}
    queue.addOperation(after)
    let entry = queue.stallReport()["after"]
    #expect(entry?.cause == .notReady)
    #expect(entry?.description.contains("barrier block") == true)
    held.gate.open()
    await queue.finished()
  }

  // MARK: Added by Foundation's own verbs

  @Test func whatFoundationsVerbsAddedToThisQueueIsThere() async {
    let queue = queue("sync")
    queue.isSuspended = true
    queue.addOperation(note("a") as Operation)
    #expect(queue.stallReport()["a"]?.cause == .suspended)
    queue.isSuspended = false
    await queue.finished()
  }

  @Test func whatFoundationsVerbsAddedElsewhereIsNotSaidToBeNowhere() async {
    let elsewhere = queue("elsewhere")
    elsewhere.isSuspended = true
    let (a, b) = (note("a"), note("b"))
    a ==> b
    elsewhere.addOperation(a as Operation)
    let queue = queue("sync")
    queue.addOperation(b)
    let entry = queue.stallReport()["a"]
    #expect(entry?.cause == .notEnqueued)
    #expect(entry?.description.contains("unless it was added by Foundation's") == true)
    elsewhere.isSuspended = false
    await queue.finished()
  }

  // MARK: One operation

  @Test func anOperationThatWasNeverAddedSaysSo() async {
    let orphan = note("orphan")
    #expect(orphan.stallReport()["orphan"]?.cause == .notEnqueued)
    #expect(
      "\(orphan.stallReport())" == """
        1 operation has not finished, in the operation “orphan” or where it waits:
        “orphan” was never added to a queue or a group.
        """
    )
    let queue = queue("sync")
    queue.addOperation(orphan)
    await orphan.finished()
    #expect("\(orphan.stallReport())" == "Nothing is left to be done in the operation “orphan”.")
  }

  @Test func anOperationInAQueueSaysWhatItWaitsFor() async {
    let (held, waiting) = (HeldOperation().named("held"), note("waiting"))
    held ==> waiting
    let queue = queue("sync")
    queue.addOperations([held, waiting])
    await held.begun.opened()
    let report = waiting.stallReport()
    #expect(report["waiting"]?.waitsFor == ["held"] && report["waiting"]?.cause == .executing)
    held.gate.open()
    await waiting.finished()
  }

  @Test(arguments: [2, 9, 12])
  func theOtherOperationsItWaitsForAreNamed(count: Int) {
    let last = note("last")
    for index in 0..<count { note("\(index)").waits(for: note("-")) ==> last }
    let text = last.stallReport()["last"]?.description ?? ""
    let others =
      switch count {
      case 2: " and “1”; “0” "
      case 9: ", “1”, “2”, “3”, “4”, “5”, “6”, “7” and “8”; “0” "
      default: ", “1”, “2”, “3”, “4”, “5”, “6”, “7”, “8” and 3 others; “0” "
      }
    #expect(text.hasPrefix("“last” waits for “0”\(others)"), "\(text)")
  }

  @Test func aRetrySaysWhichAttemptIsNextAndWhen() async {
    let clock = ManualClock()
    let retry = RetryOperation(attempts: 5, backoff: .constant(.seconds(10))) { _ in
      ResultOperation<Int> { throw TestError("again") }
    }.named("retry")
    retry.clock = clock
    let queue = queue("sync")
    queue.addOperation(retry)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(4))
    #expect(
      queue.stallReport()["retry"]?.description == "“retry” waits for attempt 2 of 5, which begins in 6 s."
    )
    retry.cancel()
    await retry.finished()
  }

  // MARK: The report

  @Test func askingTellsFoundationNothing() async {
    let (missing, last) = (note("missing"), note("last"))
    missing ==> last
    let queue = queue("sync")
    queue.addOperation(last)
    // If it had asked whether the operation is ready, it could not be sure any more that nobody else has.
    for _ in 0..<2 { #expect(queue.stallReport()["missing"]?.description.contains("was never added") == true) }
    queue.addOperation(missing)
    await queue.finished()
  }

  @Test func itIsTheSameAfterEncodingAndDecoding() async throws {
    let (held, next) = (HeldOperation().named("held"), note("next"))
    let queue = queue("sync", limit: 1)
    queue.addOperations([held, next])
    await held.begun.opened()
    let report = queue.stallReport()
    let data = try JSONEncoder().encode(report)
    #expect(try JSONDecoder().decode(StallReport.self, from: data) == report)
    #expect(String(decoding: data, as: UTF8.self).contains(#""cause":"saturated""#))
    let json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let entries = try #require(json["entries"] as? [[String: Any]])
    let elapsed = try #require(entries.compactMap { $0["elapsed"] as? Double }.first)
    let reported = try #require(report["held"]?.elapsed) / .seconds(1)
    #expect(elapsed >= 0 && abs(elapsed - reported) < 1e-6)
    held.gate.open()
    await queue.finished()
  }

  @Test func itHoldsNothing() async {
    let live = LiveCount()
    let queue = queue("sync")
    queue.isSuspended = true
    queue.addOperation(CountedGroup(live, [note("member")]))
    let report = queue.stallReport()
    queue.isSuspended = false
    await queue.finished()
    await live.none()
    #expect(report.entries.count == 2)
  }

  @Test func sentencesStayShortHoweverLongTheChain() async {
    let operations = (0..<3000).map { note("\($0)") }
    for (before, after) in zip(operations, operations.dropFirst()) { before ==> after }
    let group = GroupOperation(operations).named("group")
    let report = group.stallReport()
    #expect(report.entries.count == 3001)
    #expect(report.entries.allSatisfy { $0.description.count < 300 })
    #expect(report.description.components(separatedBy: "\n").count == 102)
    #expect(report.description.hasSuffix("… and 2901 more."))
  }

  @Test func aLongCycleIsCutShort() async {
    let operations = (0..<1000).map { note("\($0)") }
    for (before, after) in zip(operations, operations.dropFirst()) { before ==> after }
    operations[999] ==> operations[0]
    let queue = queue("round")
    queue.addOperations(operations)
    let report = queue.stallReport()
    #expect(report.entries.count == 1000)
    #expect(report.entries.allSatisfy { $0.cause == .cycle && $0.description.count < 400 })
    #expect(report["0"]?.description.hasSuffix(", and so on, back to “0”, in a cycle.") == true)
    operations[0].removeDependency(operations[999])
    await queue.finished()
  }
}

extension StallReport {
  fileprivate subscript(name: String) -> Entry? { entries.first { $0.operation == name } }
}

extension GroupOperation {
  /// Waits until the group executes.
  fileprivate func begun() async {
    let begun = Gate()
    addObserver(OperationObserver(didStart: { _ in begun.open() }))
    if isExecuting { begun.open() }
    await begun.opened()
  }
}

private final class HeldAttempt: ResultOperation<Void>, @unchecked Sendable {
  let begun = Gate()

  override func execute() { begun.open() }
}

/// Not ready until it is allowed to be.
private final class NeverReady: Operation, @unchecked Sendable {
  private let isAllowed = Gate()

  override var isReady: Bool { isAllowed.isOpen && super.isReady }

  func allow() {
    willChangeValue(for: \.isReady)
    isAllowed.open()
    didChangeValue(for: \.isReady)
  }
}
