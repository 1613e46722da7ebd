import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What a stall report says of queues and groups that are suspended, full, or have no slots.
@Suite(.timeLimit(.minutes(5)))
struct StallSlotTests {
  private let queue = OperationQueue.named("sync")

  // MARK: Suspended

  @Test(arguments: [false, true]) func aChainOverThreeQueuesEndsAtTheSuspendedOne(isPlain: Bool) async throws {
    let (middle, last) = (OperationQueue.named("B", limit: 1), OperationQueue.named("C"))
    last.isSuspended = true
    let operations = ["x", "y", "z"].map { isPlain ? BlockOperation {}.named($0) : operation($0) }
    operations[0] ==> operations[1] ==> operations[2]
    for (operation, queue) in zip(operations, [last, middle, queue]) { queue.addOperations([operation]) }
    let report = queue.stallReport(alsoIn: [middle, last])
    #expect(report.entries.map(\.operation) == ["x", "y", "z"] && report.entries.map(\.place) == ["C", "B", "sync"])
    #expect(report.entries.allSatisfy { $0.cause == .suspended && $0.description.contains("“C” is suspended") })
    #expect(report.entries.map(\.root) == [nil, "x", "x"])
    let sentence = "“y” waits for “x”, which cannot start because the queue “C” is suspended."
    #expect(report.entries[1].description == sentence)
    last.isSuspended = false
    await operations[2].finished()
  }

  @Test func cancelledOnesInASuspendedQueueWaitForItToo() async {
    let (missing, a, b) = (operation("missing"), operation("a"), BlockOperation {}.named("b"))
    missing ==> a
    queue.isSuspended = true
    queue.addOperations([a, b])
    queue.cancelAllOperations()
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation) == ["a", "b"] && report.entries.allSatisfy { $0.cause == .suspended })
    queue.isSuspended = false
    await queue.finished()
  }

  @Test func aQueueWithoutANameIsNotCalledByItsAddress() async throws {
    let queue = OperationQueue.suspended()
    queue.addOperation(operation("a"))
    let entry = try queue.stallReport().entry("a")
    #expect(entry.description == "“a” cannot start because its queue is suspended." && entry.place == nil)
    queue.isSuspended = false
    await queue.finished()
  }

  @Test(arguments: [false, true], [false, true])
  func aQueueOrAGroupThatExecutesNothingIsNamed(isGroup: Bool, isSuspended: Bool) async throws {
    let group = GroupOperation([operation("member")]).named("group")
    if isGroup {
      if isSuspended { group.isSuspended = true } else { group.maxConcurrentOperationCount = 0 }
    } else {
      if isSuspended { queue.isSuspended = true } else { queue.maxConcurrentOperationCount = 0 }
    }
    queue.addOperation(group)
    if isGroup { await group.begun() }
    let place = isGroup ? "the group “group”" : "the queue “sync”"
    let reason = isSuspended ? "\(place) is suspended" : "maxConcurrentOperationCount of \(place) is 0"
    for report in [queue.stallReport(), group.stallReport()] {
      let entry = try report.entry(isGroup ? "member" : "group")
      #expect(entry.cause == .suspended)
      #expect(entry.description == "“\(entry.operation)” cannot start because \(reason).")
    }
    (group.isSuspended, group.maxConcurrentOperationCount) = (false, 1)
    (queue.isSuspended, queue.maxConcurrentOperationCount) = (false, 1)
    await queue.finished()
  }

  @Test func aSuspendedGroupWithoutMembersWaitsForSome() async throws {
    let group = GroupOperation().named("group")
    group.isSuspended = true
    queue.addOperation(group)
    await group.begun()
    let entry = try queue.stallReport().entry("group")
    #expect(entry.cause == .suspended && entry.description == "“group” is suspended, and waits for members.")
    group.isSuspended = false
    await queue.finished()
  }

  // MARK: Full

  @Test(arguments: [1, 2]) func whoTakesTheSlotsIsNamedWithTheTime(limit: Int) async throws {
    let narrow = OperationQueue.named("narrow", limit: limit)
    let names = (1...limit).map { "held \($0)" }
    var held: [HeldOperation] = []
    for name in names { held.append(await narrow.holding(name)) }
    let waiting = operation("waiting")
    narrow.addOperation(waiting)
    queue.addOperation(waiting ==> operation("after"))
    let report = queue.stallReport()
    #expect(report.entries.suffix(2).map(\.operation) == ["waiting", "after"])
    let (entry, dependent) = try (report.entry("waiting"), report.entry("after"))
    #expect(entry.cause == .saturated && entry.place == "narrow" && dependent.cause == .saturated)
    #expect(Set(entry.waitsFor) == Set(names))
    let slot = "waits for \(limit == 1 ? "the slot" : "a slot of the 2") of the queue “narrow”, taken by “held "
    #expect(entry.description.hasPrefix("“waiting” \(slot)"))
    #expect(dependent.description.hasPrefix("“after” waits for “waiting”, which \(slot)"))
    for name in names {
      #expect(entry.description.contains("“\(name)” for "))
      let holder = try report.entry(name)
      #expect(holder.cause == .executing && holder.waitsFor.isEmpty && holder.elapsed != nil)
    }
    for operation in held { operation.gate.open() }
    await queue.finished()
  }

  /// The other holder cannot finish: one of its members waits for an operation that was never added, or for the one
  /// that waits for the slot. Beside that member, another one may execute.
  @Test(arguments: [false, true], [false, true])
  func oneSlotThatWillBeFreeIsEnough(isCycle: Bool, hasExecutingMember: Bool) async throws {
    let narrow = OperationQueue.limited(to: 2)
    let (held, inner) = (await narrow.holding(), HeldOperation())
    let (missing, waiting, member) = (operation("missing"), operation("waiting"), operation("member"))
    (isCycle ? waiting : missing) ==> member
    let group = GroupOperation(hasExecutingMember ? [inner, member] : [member]).named("group")
    narrow.addOperation(group)
    await group.begun()
    if hasExecutingMember { await inner.begun.opened() }
    narrow.addOperation(waiting)
    let entry = try narrow.stallReport().entry("waiting")
    #expect(entry.cause == .saturated && Set(entry.waitsFor) == ["held", "group"], "\(entry)")
    queue.addOperation(missing)
    held.gate.open()
    inner.gate.open()
    await narrow.finished()
  }

  @Test func plainOperationsOfTheQueueAreSeen() async throws {
    let (begun, end) = (Gate(), Gate())
    let held = BlockOperation {
      begun.open()
      end.pass()
    }.named("held")
    let (next, after) = (BlockOperation {}.named("next"), BlockOperation {}.named("after"))
    next ==> after
    let narrow = OperationQueue.named("plain", limit: 1)
    narrow.addOperations([held, next, after])
    await begun.opened()
    let report = narrow.stallReport()
    let entry = try report.entry("held")
    #expect(entry.cause == .executing && entry.elapsed == nil)
    #expect(entry.description == "“held” is executing (Foundation does not record since when).")
    let sentence = "“next” waits for the slot of the queue “plain”, taken by “held”."
    #expect(try report.entry("next").description == sentence && report.entry("next").waitsFor == ["held"])
    #expect(try report.entry("after").root == "held")
    end.open()
    await narrow.finished()
  }
}
