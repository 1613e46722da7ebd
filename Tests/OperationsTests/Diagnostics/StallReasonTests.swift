import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Each wait of an operation has a sentence of its own in its stall report, which never says that it is about to start.
@Suite(.timeLimit(.minutes(5)))
struct StallReasonTests {
  private typealias Phase = OperationLifecycle.Phase

  private let queue = OperationQueue.named("queue")
  private let narrow = OperationQueue.named("narrow", limit: 1)
  private let domain = ExclusivityDomain()
  private let clock = ManualClock()

  /// An operation that has been started waits for its keys with the same sentence.
  private static let waits: [(phase: Phase, cause: StallReport.Cause, sentence: String)] = [
    (.pending(.groupStart), .executing, "cannot begin before its group “group”; at the root, “holder” has "),
    (.pending(.dependencies), .executing, "waits for “holder”, which has "),
    (.pending(.keys), .exclusivity, "waits for the key “key”, held by “holder”, which has "),
    (.suspended(.keys), .exclusivity, "waits for the key “key”, held by “holder”, which has "),
    (.paused(.keys), .exclusivity, "waits for the key “key”, held by “holder”, which has "),
    (.pending(.slot), .saturated, "waits for the slot of the queue “narrow”, taken by “holder” for "),
    (.paused(.slot), .saturated, "waits for the slot of the group “group”, taken by “holder” for "),
    (.suspended(.conditions), .condition, "has not started because its condition “gate” is being evaluated, for "),
    (.paused(.delay), .backingOff, "waits for attempt 2 of 2, which begins in 1 s."),
  ]

  @Test func everyWait_hasASentenceOfItsOwn() async throws {
    for (phase, cause, sentence) in Self.waits {
      let (operation, holder) = await waiting(in: phase)
      await poll { operation.core.withLock { $0.lifecycle.phase } == phase }
      // An operation enters this phase before the wait queue of its key.
      if phase.wait == .keys { await poll { !domain.waiting(for: "key").isEmpty } }
      let entry = try operation.stallReport(alsoIn: [queue, narrow]).entry("x")
      #expect(entry.description.hasPrefix("“x” \(sentence)"), "\(phase)")
      #expect(entry.cause == cause && !entry.description.contains("about to start"), "\(phase): \(entry)")
      holder.gate.open()
      if phase == .paused(.delay) { clock.advance(by: .seconds(1)) }
      await operation.finished()
      await holder.finished()
    }
  }

  /// Returns an operation that waits for what the phase says, until the other operation has finished.
  private func waiting(in phase: Phase) async -> (AsyncOperation, HeldOperation) {
    let holder = HeldOperation().named("holder")
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1)), succeeding(at: 2))
    let x: AsyncOperation = phase.isExecuting ? retry : AsyncOperation()
    x.named("x").clock = clock
    if phase.wait == .keys || phase.wait == .groupStart { x.exclusive("key", in: domain) }
    switch phase {
    case .pending(.groupStart):
      queue.addOperations([holder, holder ==> GroupOperation([x]).named("group")])
    case .pending(.dependencies): queue.addOperations([holder, holder ==> x])
    case .pending(.slot): narrow.addOperations([holder, x])
    case .suspended(.conditions):
      let begun = Gate()
      x.addCondition("met at once") { _ in }
      x.addCondition("gate") { _ in
        begun.open()
        await holder.finished()
      }
      queue.addOperations([holder, x])
      await begun.opened()
    case .paused(.slot):
      queue.addOperation(GroupOperation([x, holder], maxConcurrentOperationCount: 1).named("group"))
    default:
      if !phase.isExecuting { await queue.begin(holder.exclusive("key", in: domain)) }
      if phase == .suspended(.keys) { queue.addByFoundation(x) } else { queue.addOperation(x) }
    }
    if phase.isExecuting {
      // The first attempt has failed.
      await clock.waitForSleepers(1)
      if phase == .paused(.keys) { holder.exclusive("key", in: domain) }
      if phase != .paused(.slot) { queue.addOperation(holder) }
    }
    await holder.begun.opened()
    if phase.isExecuting, phase != .paused(.delay) { clock.advance(by: .seconds(1)) }
    return (x, holder)
  }

  @Test func membersThatWaitForKeysWithSeveralHolders_nameWhatExecutes() async throws {
    let held = (0..<12).map { HeldOperation().named("held \($0)") }
    for (index, operation) in held.enumerated() { operation.limited(index % 4 < 2 ? "a" : "b", to: 2, in: domain) }
    let group = GroupOperation(held, maxConcurrentOperationCount: 2).named("group")
    await queue.add(group, until: held[0].begun)
    await held[1].begun.opened()
    // The calls of members that find no slot end meanwhile. A member is about to start while it is being called.
    let isAboutToStart = { group.stallReport().description.contains("about to start") }
    await poll { !isAboutToStart() }
    for entry in group.stallReport().entries where entry.operation != "group" {
      #expect(entry.description.contains(/has|executing|“held [01]”/), "\(entry)")
    }
    await queue.drained(opening: held.map(\.gate))
  }

  @Test func aTaskThatWaitsFirst_isExplained() async throws {
    let holder = await queue.holder(of: "a", in: domain)
    let task = Task { [domain] in try await withKeys(.exclusive("a", "b"), in: domain, name: "task") {} }
    await poll { !domain.waiting(for: "b").isEmpty }
    queue.addOperation(operation("x").exclusive("b", in: domain))
    let entry = try queue.stallReport().entry("x")
    let sentence = "“x” waits for the key “b” behind “task”, which waits for the key “a”, held by “holder”, which has "
    #expect(entry.description.hasPrefix(sentence) && entry.cause == .exclusivity, "\(entry)")
    #expect(entry.waitsFor == ["task"] && entry.root == "holder")
    await queue.drained(opening: [holder.gate])
    try await task.value
  }

  @Test func anOperationWhoseTaskWaitsForAKey_isExplained() async throws {
    let holder = await queue.holder(of: "a", in: domain)
    let waiter = TaskOperation { [domain] in try await withKeys(.exclusive("a"), in: domain) {} }.named("x")
    queue.addOperation(waiter)
    await poll { [domain] in waiter.isAwaiting && domain.waiting(for: "a").count == 1 }
    let entry = try queue.stallReport().entry("x")
    #expect(entry.description.hasPrefix("“x” waits for the key “a”, held by “holder”, which has "), "\(entry)")
    #expect(entry.cause == .exclusivity && entry.root == "holder")
    await queue.drained(opening: [holder.gate])
    #expect(waiter.isSuccessful && !waiter.isAwaiting)
  }

  /// A member of a holder passes only those that wait for this holder.
  @Test func anEarlierWaiterOutsideTheHolder_isNamed() async throws {
    let first = await queue.holder(of: "a", in: domain).named("holder of a")
    let second = await queue.holder(of: "b", in: domain).named("holder of b")
    queue.addOperation(operation("waiter").exclusive("a", "c", in: domain))
    await poll { !domain.waiting(for: "c").isEmpty }
    let group = GroupOperation([operation("x").exclusive("b", "c", in: domain)])
    queue.addOperation(group.exclusive("group", in: domain))
    await poll { domain.waiting(for: "b") == ["x"] }
    let entry = try queue.stallReport().entry("x")
    // The holder that has executed for longer comes first in the sentence.
    #expect(["b", "c"].allSatisfy { entry.description.contains("the key “\($0)”") }, "\(entry)")
    #expect(entry.waitsFor == ["holder of b", "waiter"])
    await queue.drained(opening: [first.gate, second.gate])
  }
}
