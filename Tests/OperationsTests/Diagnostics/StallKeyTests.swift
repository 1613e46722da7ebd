import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What a stall report says of keys.
@Suite(.timeLimit(.minutes(5)))
struct StallKeyTests {
  private let queue = OperationQueue.named("alerts")
  private let domain = ExclusivityDomain()

  /// An operation that holds the key.
  private func holder(of key: ExclusivityKey) async -> HeldOperation {
    let holder = HeldOperation().named("holder")
    queue.addOperation(holder.exclusive(key, in: domain))
    await holder.begun.opened()
    return holder
  }

  @Test func whoHoldsTheKeyIsNamedAndWhoIsBeforeOneInTheLine() async throws {
    let (holder, waiting) = (await holder(of: "key"), operation("waiting"))
    let group = GroupOperation([BlockOperation {}.named("plain")]).named("group")
    queue.addOperation(waiting.exclusive("key", "other", in: domain))
    queue.addOperation(waiting ==> operation("after"))
    queue.addOperation(group.exclusive("key", in: domain))
    queue.addOperation(operation("last").exclusive("other", in: domain))
    let report = queue.stallReport()
    for name in ["waiting", "after", "last", "group", "plain"] {
      #expect(try report.entry(name).cause == .exclusivity)
    }
    #expect(try report.entry("waiting").waitsFor == ["holder"] && report.entry("last").waitsFor == ["waiting"])
    #expect(try report.entry("after").root == "holder" && report.entry("group").waitsFor.contains("holder"))
    #expect(try report.entry("group").description.contains(/“key”.*“holder”/))
    let sentence = "waits for the key “key”, held by “holder”, which has "
    #expect(try report.entry("waiting").description.hasPrefix("“waiting” \(sentence)"))
    let last = try report.entry("last").description
    #expect(last.hasPrefix("“last” waits for the key “other” behind “waiting”, which \(sentence)"))
    holder.gate.open()
    await queue.finished()
  }

  @Test func theLimitOfTheKeyIsNamed() async throws {
    let held = (0..<2).map { HeldOperation().named("held \($0)") }
    for operation in held {
      queue.addOperation(operation.limited("host", to: 2, in: domain))
      await operation.begun.opened()
    }
    queue.addOperation(operation("waiting").limited("host", to: 4, in: domain))
    let entry = try queue.stallReport().entry("waiting")
    #expect(entry.cause == .exclusivity && Set(entry.waitsFor) == ["held 0", "held 1"])
    #expect(entry.description.contains("waits for the key “host” (limit 2), held by “held "))
    for operation in held { operation.gate.open() }
    await queue.finished()
  }

  @Test func aThrottledKeyIsNamed() async throws {
    let clock = ManualClock()
    for name in ["first", "second"] {
      let operation = operation(name).throttled("api", to: 1, per: .seconds(1), in: domain)
      operation.clock = clock
      queue.addOperation(operation)
      // It begins at 0 s, and not after the clock has been moved.
      if name == "first" { await operation.finished() }
    }
    await clock.waitForSleepers(1)
    let entry = try queue.stallReport().entry("second")
    #expect(entry.cause == .exclusivity)
    #expect(entry.description == "“second” waits for its turn under the throttled key “api”.")
    clock.advance(by: .seconds(1))
    await queue.finished()
  }

  @Test func aMemberWaitsForAKeyThatIsHeldOutside() async throws {
    let (holder, group) = (await holder(of: "key"), GroupOperation([]).named("group"))
    group.addOperation(operation("member").exclusive("key", in: domain))
    queue.addOperation(group)
    await poll { !domain.waiting(for: "key").isEmpty }
    let report = group.stallReport()
    #expect(try report.entry("member").waitsFor == ["holder"] && report.entry("group").cause == .exclusivity)
    holder.gate.open()
    await group.finished()
  }

  @Test func aMemberWithAKeyWaitsForItsGroup() throws {
    let missing = GroupOperation([])
    missing.addOperation(operation("member").exclusive("key", in: domain))
    #expect(try missing.stallReport().entry("member").cause == .notEnqueued)
    missing.cancel()
    missing.start()
  }

  @Test func aCycleThroughAKeyIsSpelledOut() async throws {
    let (member, wanting) = (operation("member"), operation("wanting"))
    wanting ==> member
    let group = GroupOperation([member]).named("group")
    queue.addOperation(group.exclusive("k", in: domain))
    await group.begun()
    queue.addOperation(wanting.exclusive("k", in: domain))
    let entry = try queue.stallReport().entry("wanting")
    #expect(
      entry.description
        == "“wanting” waits for the key “k”, held by “group”, which waits for its member “member”, which waits for "
        + "“wanting”, in a cycle."
    )
    #expect(entry.cause == .cycle)
    member.removeDependency(wanting)
    await queue.finished()
  }

  @Test func twoGroupsWantEachOthersKeysByWayOfOthers() async throws {
    let (x, y, m1, m2) = (operation("x"), operation("y"), operation("m1"), operation("m2"))
    x ==> m1
    y ==> m2
    let groups = [GroupOperation([m1]).named("G1"), GroupOperation([m2]).named("G2")]
    queue.addOperation(groups[0].exclusive("k1", in: domain))
    queue.addOperation(groups[1].exclusive("k2", in: domain))
    for group in groups { await group.begun() }
    queue.addOperation(x.exclusive("k2", in: domain))
    queue.addOperation(y.exclusive("k1", in: domain))
    let report = queue.stallReport()
    #expect(report.entries.count == 6 && report.entries.allSatisfy { $0.cause == .cycle })
    for part in ["the key “k2”", "“G2”", "“m2”", "“y”", "the key “k1”", "“G1”", "“m1”"] {
      #expect(try report.entry("x").description.contains(part))
    }
    queue.cancelAllOperations()
    await queue.finished()
  }
}
