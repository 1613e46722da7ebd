import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Stall reports of operations in no queue or group, in a group, in another queue, and before they are ready.
@Suite(.timeLimit(.minutes(5)))
struct StallPlaceTests {
  private let queue = OperationQueue.named("sync")
  private let elsewhere = OperationQueue.named("elsewhere")

  // MARK: Never added

  @Test func neverAddedNestedGroups_areTheRoot() async throws {
    let (member, waiting) = (operation("member"), operation("waiting"))
    let inner = GroupOperation([member]).named("inner")
    let outer = GroupOperation([inner]).named("outer")
    member ==> waiting
    queue.addOperation(waiting)
    let entry = try queue.stallReport().entry("waiting")
    #expect(entry.cause == .notEnqueued && entry.root == "outer" && entry.description.contains("“outer”"))
    for report in [queue.stallReport(), inner.stallReport(), outer.stallReport()] {
      #expect(report.roots.map(\.operation) == ["outer"], "\(report)")
    }
    let entries = inner.stallReport().entries
    #expect(entries.map(\.root) == [nil, "outer", "outer"])
    let sentence = "“inner” cannot begin before its group “outer”, which was never added to a queue or a group."
    #expect(entries.map(\.description).prefix(2) == ["“outer” was never added to a queue or a group.", sentence])
    queue.addOperation(outer)
    await waiting.finished()
  }

  @Test func aPlainMemberAwaitedFromOutside_isInItsGroup() async throws {
    let (held, member, waiting) = (HeldOperation(), BlockOperation {}.named("plain"), operation("waiting"))
    let group = GroupOperation([held, member], maxConcurrentOperationCount: 1)
    member ==> waiting
    elsewhere.addOperation(group)
    await queue.add(waiting, until: held.begun)
    #expect(try queue.stallReport(alsoIn: [elsewhere]).entry("plain").cause == .saturated)
    await elsewhere.drained(opening: [held.gate])
    await queue.finished()
  }

  // MARK: Other queues

  @Test(arguments: [(true, "none of the searched queues"), (false, "unless it was added by Foundation's")])
  func anOperationThatFoundationAdded_isFoundInTheGivenQueues(isPlain: Bool, guess: String) async throws {
    let load = isPlain ? BlockOperation {}.named("load") : operation("load")
    let (show, lead) = (operation("show"), operation("lead"))
    elsewhere.isSuspended = true
    elsewhere.addByFoundation(load)
    queue.addOperation(load ==> show)
    let entry = try queue.stallReport().entry("load")
    #expect(entry.cause == .notEnqueued && entry.description.contains(guess))
    #expect(try elsewhere.stallReport().entry("load").cause == .suspended)
    let report = queue.stallReport(alsoIn: [elsewhere])
    #expect(try report.entry("show").cause == .suspended && report.entry("show").root == "load")
    #expect(try report.entry("load").place == "elsewhere")
    // An `AsyncOperation` in the queue leads to it.
    elsewhere.addOperation(lead)
    lead ==> show
    #expect(try queue.stallReport().entry("load").cause == .suspended)
    await elsewhere.drained()
    await queue.finished()
  }

  @Test func theMainQueue_isAlwaysSearched() async throws {
    let (held, beside, show) = (HeldOperation().named("held"), BlockOperation {}.named("beside"), operation("show"))
    held ==> beside ==> show
    queue.addOperation(show)
    OperationQueue.main.addOperation(beside)
    #expect(try queue.stallReport().entry("beside").place == "main")
    await OperationQueue.main.begin(held)
    for report in [queue.stallReport(), OperationQueue.main.stallReport()] {
      #expect(try report.entry("held").place == "main" && report.entry("held").cause == .executing)
    }
    await queue.drained(opening: [held.gate])
  }

  @Test func theSlotOfASchedulersQueue_isInUseByItsEvents() async throws {
    let scheduler = SerialScheduler(name: "disk")
    let (end, waiting) = (await scheduler.held(), operation("waiting"))
    scheduler.queue.addOperation(waiting)
    let entry = try scheduler.queue.stallReport().entry("waiting")
    #expect(entry.cause == .saturated && entry.place == "disk" && entry.description.contains("events"))
    await waiting.finished(opening: end)
  }

  // MARK: Readiness

  @Test func anOverriddenReadiness_isNamed() async throws {
    let operation = PlainMemberTests.Willing {}.named("moody")
    queue.addOperation(operation)
    let entry = try queue.stallReport().entry("moody")
    #expect(entry.cause == .notReady && entry.description.contains("its isReady is overridden"))
    operation.cancel()
    operation.agree()
    await queue.finished()
  }

  @Test func anOperationBehindABarrierBlock_isNotReady() async throws {
    let held = await queue.holding()
    queue.addBarrierBlock {}
    queue.addOperation(operation("after"))
    let entry = try queue.stallReport().entry("after")
    #expect(entry.cause == .notReady && entry.description.contains("barrier block"))
    #expect(!entry.description.contains("overridden"), "isReady is final in an `AsyncOperation`")
    await queue.drained(opening: [held.gate])
  }
}
