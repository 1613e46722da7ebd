import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Stall reports of dependencies, members and slots that wait for each other.
@Suite(.timeLimit(.minutes(5)))
struct StallCycleTests {
  private let queue = OperationQueue.named("sync")
  private let narrow = OperationQueue.named("one", limit: 1)

  @Test(arguments: [false, true]) func aCycleIsSpelledOut(isPlain: Bool) async throws {
    let other = OperationQueue()
    let ring = ["a", "b", "c"].map { isPlain ? Operation().named($0) : operation($0) }
    let after = operation("after")
    ring[0] ==> ring[1] ==> ring[2] ==> ring[0]
    ring[2] ==> after
    queue.addOperations([ring[0], ring[1], after])
    other.addOperations([ring[2]])
    let report = queue.stallReport(alsoIn: [other])
    #expect(report.entries.count == 4 && report.entries.allSatisfy { $0.cause == .cycle })
    #expect(Set(report.roots.map(\.operation)) == ["a", "b", "c"])
    let sentence = "“c”, which waits for “b”, which waits for “a”"
    #expect(try report.entry("a").description == "“a” waits for \(sentence), in a cycle.")
    let entry = try report.entry("after")
    #expect(entry.description == "“after” waits for \(sentence), which waits for “c”, in a cycle." && entry.root == "c")
    // On Linux, a plain operation whose dependency is removed never becomes ready, so the test awaits only `after`.
    after.removeDependency(ring[2])
    await after.finished()
    for operation in ring { operation.cancel() }
    untie(ring)
  }

  @Test func aLongCycleIsCutShort() async throws {
    let operations = chain((0..<1000).map { operation("\($0)") })
    operations[999] ==> operations[0]
    queue.addOperations(operations)
    let report = queue.stallReport()
    #expect(report.entries.count == 1000)
    #expect(report.entries.allSatisfy { $0.cause == .cycle && $0.description.count < 400 })
    #expect(try report.entry("0").description.hasSuffix(", and so on, back to “0”, in a cycle."))
    operations[0].removeDependency(operations[999])
    await queue.finished()
  }

  @Test func aMemberThatWaitsForItsOwnGroup() async throws {
    let (group, member) = (GroupOperation([]).named("group"), operation("member"))
    group ==> member
    group.addOperation(member)
    queue.isSuspended = true
    queue.addOperation(group)
    let report = queue.stallReport()
    #expect(report.entries.allSatisfy { $0.cause == .cycle } && report.entries.count == 2)
    #expect(try report.entry("group").waitsFor == ["member"] && report.entry("member").waitsFor == ["group"])
    await queue.drained()
  }

  // MARK: Slots

  @Test(arguments: [false, true]) func aCycleThroughASlotIsSpelledOut(inAGroup: Bool) async throws {
    let later = operation("later")
    let group = GroupOperation([later ==> operation("member")]).named("group")
    let outer = GroupOperation(inAGroup ? [group, later] : []).named("one")
    outer.maxConcurrentOperationCount = 1
    narrow.addOperations(inAGroup ? [outer] : [group, later])
    await group.begun()
    for report in [narrow.stallReport(), group.stallReport()] {
      #expect(report.entries.count >= 3 && report.entries.allSatisfy { $0.cause == .cycle }, "\(report)")
      let slot = "the slot of the \(inAGroup ? "group" : "queue") “one”"
      #expect(
        try report.entry("later").description
          == "“later” waits for \(slot), taken by “group”, which waits for its member “member”, which waits for "
          + "“later”, in a cycle."
      )
    }
    narrow.maxConcurrentOperationCount = 2
    outer.maxConcurrentOperationCount = 2
    await narrow.finished()
  }

  @Test func ifBothSlotsAreInCycles_noOperationIsAboutToFinish() async {
    let later = [operation("1"), operation("2")]
    let groups = later.map { GroupOperation([$0 ==> operation("member")]) }
    narrow.maxConcurrentOperationCount = 2
    narrow.addOperations(groups)
    for group in groups { await group.begun() }
    narrow.addOperations(later)
    let report = narrow.stallReport()
    #expect(report.entries.count == 6)
    #expect(report.entries.allSatisfy { $0.cause == .cycle && $0.description.contains("in a cycle") }, "\(report)")
    #expect(!"\(report)".contains("about to"), "\(report)")
    narrow.cancelAllOperations()
    await narrow.finished()
  }

  @Test func aLoweredLimitCanCloseACycle() async throws {
    let (held, inner, waiting) = (await narrow.holding(), HeldOperation(), operation("waiting"))
    narrow.maxConcurrentOperationCount = 2
    narrow.addOperation(GroupOperation([inner, waiting ==> operation("member")]))
    await inner.begun.opened()
    narrow.maxConcurrentOperationCount = 1
    narrow.addOperation(waiting)
    #expect(try narrow.stallReport().entry("waiting").cause == .cycle)
    narrow.maxConcurrentOperationCount = -1
    await narrow.drained(opening: [held.gate, inner.gate])
  }

  @Test func slotThatIsPartOfACycle_isTheCauseOfAllThatWaitForIt() async throws {
    let (first, second) = (operation("first"), operation("second"))
    let group = GroupOperation([first ==> operation("member")]).named("group")
    narrow.addOperations([group, first, second, second ==> operation("third")])
    await group.begun()
    let report = narrow.stallReport()
    for name in ["second", "third"] {
      #expect(try report.entry(name).cause == .cycle && report.entry(name).root == "group", "\(report)")
    }
    let sentence = "; “group” waits for its member “member”, which waits for “first”"
    #expect(try report.entry("second").description.contains(sentence), "\(report)")
    #expect(try report.entry("third").description.contains("in a cycle"), "\(report)")
    narrow.maxConcurrentOperationCount = -1
    await narrow.finished()
  }
}
