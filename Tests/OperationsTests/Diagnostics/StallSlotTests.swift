import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StallSlotTests {
  private let queue = OperationQueue.named("sync")
  private let domain = ExclusivityDomain()

  // MARK: Suspended

  @Test func cancelledInASuspendedQueue_waitsForTheQueueOnly() async {
    let (a, b) = (operation("a"), BlockOperation {}.named("b"))
    operation("missing") ==> a
    queue.isSuspended = true
    queue.addOperations([a, b])
    queue.cancelAllOperations()
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation) == ["a", "b"] && report.entries.allSatisfy { $0.cause == .suspended })
    await queue.drained()
  }

  @Test func cancelledBehindAnExecutingOperation_waitsForTheSlotOnly() async throws {
    queue.maxConcurrentOperationCount = 1
    let (held, a) = (await queue.holding(), operation("a"))
    queue.addOperation(a)
    a.cancel()
    let sentence = try queue.stallReport().entry("a").description
    #expect(sentence.hasPrefix("“a” was cancelled, and only waits for the slot of the queue “sync”, taken by “held”"))
    await queue.drained(opening: [held.gate])
  }

  @Test(arguments: [false, true], [false, true])
  func aQueueOrAGroupThatExecutesNothing_isNamed(isGroup: Bool, isSuspended: Bool) async throws {
    let group = GroupOperation([operation("member")]).named("group")
    let limit = isSuspended ? 1 : 0
    if isGroup {
      (group.isSuspended, group.maxConcurrentOperationCount) = (isSuspended, limit)
    } else {
      (queue.isSuspended, queue.maxConcurrentOperationCount) = (isSuspended, limit)
    }
    queue.addOperation(group)
    if isGroup { await poll { group.isExecuting } }
    let place = isGroup ? "the group “group”" : "the queue “sync”"
    let reason = isSuspended ? "\(place) is suspended" : "maxConcurrentOperationCount of \(place) is 0"
    for report in [queue.stallReport(), group.stallReport()] {
      let entry = try report.entry(isGroup ? "member" : "group")
      #expect(entry.cause == .suspended)
      #expect(entry.description == "“\(entry.operation)” cannot start because \(reason).")
    }
    (group.isSuspended, group.maxConcurrentOperationCount, queue.maxConcurrentOperationCount) = (false, 1, 1)
    await queue.drained()
  }

  @Test func aSuspendedGroupWithoutMembers_waitsForSome() async throws {
    let group = GroupOperation().named("group")
    group.isSuspended = true
    await queue.begin(group)
    let entry = try queue.stallReport().entry("group")
    #expect(entry.cause == .suspended && entry.description == "“group” is suspended, and waits for members.")
    await group.ended()
  }

  // MARK: Full

  @Test func theHoldersOfTheSlots_areNamedWithTheirTimes() async throws {
    let (narrow, names) = (OperationQueue.named("narrow", limit: 2), ["held 1", "held 2"])
    var gates: [Gate] = []
    for name in names { gates.append(await narrow.holding(name).gate) }
    let waiting = operation("waiting")
    narrow.addOperation(waiting)
    queue.addOperation(waiting ==> operation("after"))
    let report = queue.stallReport()
    #expect(report.entries.suffix(2).map(\.operation) == ["waiting", "after"])
    let (entry, dependent) = try (report.entry("waiting"), report.entry("after"))
    #expect(entry.cause == .saturated && entry.place == "narrow" && dependent.cause == .saturated)
    #expect(Set(entry.waitsFor) == Set(names))
    let slot = "waits for one of the 2 slots of the queue “narrow”, taken by “held "
    #expect(entry.description.hasPrefix("“waiting” \(slot)"))
    #expect(dependent.description.hasPrefix("“after” waits for “waiting”, which \(slot)"))
    for name in names {
      #expect(entry.description.contains("“\(name)” for "))
      #expect(try report.entry(name).cause == .executing)
    }
    await narrow.drained(opening: gates)
    await queue.finished()
  }

  /// The other holder cannot finish: one of its members waits for an operation that was never added, or for the one
  /// that waits for the slot. Another member may execute alongside that member.
  @Test(arguments: [false, true], [false, true])
  func aSlotThatWillBeFree_isEnough(isCycle: Bool, hasExecutingMember: Bool) async throws {
    let narrow = OperationQueue.limited(to: 2)
    let (held, inner) = (await narrow.holding(), HeldOperation())
    let (missing, waiting, member) = (operation("missing"), operation("waiting"), operation("member"))
    (isCycle ? waiting : missing) ==> member
    let group = GroupOperation(hasExecutingMember ? [inner, member] : [member]).named("group")
    await narrow.begin(group)
    if hasExecutingMember { await inner.begun.opened() }
    narrow.addOperation(waiting)
    let entry = try narrow.stallReport().entry("waiting")
    #expect(entry.cause == .saturated && Set(entry.waitsFor) == ["held", "group"], "\(entry)")
    #expect(entry.place == nil && entry.description.contains(" of its queue, "), "\(entry)")
    queue.addOperation(missing)
    await narrow.drained(opening: [held.gate, inner.gate])
  }

  @Test func aPause_keepsTheSlotOfAQueue() async throws {
    let (narrow, clock) = (OperationQueue.named("narrow", limit: 1), ManualClock())
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1)), succeeding(at: 2)).named("retry")
    retry.clock = clock
    narrow.addOperations([retry, operation("next")])
    await clock.waitForSleepers(1)
    let entry = try narrow.stallReport().entry("next")
    #expect(entry.cause == .saturated && entry.waitsFor == ["retry"], "\(entry)")
    clock.advance(by: .seconds(1))
    await narrow.drained()
  }

  @Test func plainOperationsOfTheQueueAreSeen() async throws {
    let (begun, end, narrow) = (Gate(), Gate(), OperationQueue.named("plain", limit: 1))
    let held = BlockOperation {
      begun.open()
      end.pass()
    }.named("held")
    narrow.addOperations([held] + chain([BlockOperation {}.named("next"), BlockOperation {}.named("after")]))
    await begun.opened()
    let report = narrow.stallReport()
    let (executing, next) = try (report.entry("held"), report.entry("next"))
    #expect(executing.cause == .executing && executing.elapsed == nil)
    #expect(executing.description == "“held” is executing (Foundation does not record since when).")
    #expect(next.description == "“next” waits for the slot of the queue “plain”, taken by “held”.")
    #expect(try next.waitsFor == ["held"] && report.entry("after").root == "held")
    await narrow.drained(opening: [end])
  }

  // MARK: Keys

  @Test func theLimitOfTheKey_isNamed() async throws {
    let held = (0..<2).map { HeldOperation().named("held \($0)") }
    for operation in held { await queue.begin(operation.limited("host", to: 2, in: domain)) }
    queue.addOperation(operation("waiting").limited("host", to: 4, in: domain))
    let entry = try queue.stallReport().entry("waiting")
    #expect(entry.cause == .exclusivity && Set(entry.waitsFor) == ["held 0", "held 1"])
    #expect(entry.description.contains("waits for the key “host” (limit 2), held by “held "))
    await queue.drained(opening: held.map(\.gate))
  }

  @Test func aKeyWithManyHolders_namesTheFirst() async throws {
    let held = (0..<12).map { HeldOperation().named("held \($0)") }
    for operation in held { await queue.begin(operation.shared("key", in: domain)) }
    queue.addOperation(operation("waiting").exclusive("key", "other", in: domain))
    queue.addOperation(operation("last").exclusive("key", in: domain))
    let report = queue.stallReport()
    for name in ["waiting", "last"] {
      let entry = try report.entry(name)
      #expect(entry.cause == .exclusivity && entry.waitsFor.count == 8 && entry.root?.hasPrefix("held ") == true)
      #expect(entry.description.contains("waits for the key “key”, held by “held "), "\(entry)")
      #expect(entry.description.contains(/” and 4 others.*; “held \d+” has/), "\(entry)")
    }
    await queue.drained(opening: held.map(\.gate))
  }
}
