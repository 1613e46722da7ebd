import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct TaskKeysTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()
  private let gate = Gate()

  private func hold(
    _ claim: ExclusivityClaim = .exclusive("key"),
    _ name: String = "holder",
    hasSlot: Bool = false,
    then next: @escaping @Sendable () async throws -> Void = {}
  ) async -> Task<Void, any Error> {
    let begun = Gate()
    let body: @Sendable () async throws -> Void = {
      begun.open()
      await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
      try await next()
    }
    let task = immediately { try await perform(body, holding: claim, name, hasSlot: hasSlot) }
    await begun.opened()
    return task
  }

  private func perform(
    _ body: @escaping @Sendable () async throws -> Void,
    holding claim: ExclusivityClaim = .exclusive("key"),
    _ name: String = "holder",
    hasSlot: Bool
  ) async throws {
    if hasSlot {
      try await queue.withSlot(name, holding: claim, in: domain, body)
    } else {
      try await withKeys(claim, in: domain, name: name, body)
    }
  }

  /// Not `Sendable`, so that a body that uses it must run in the isolation of its caller.
  private final class Counter { var count = 0 }

  @MainActor @Test func theBodyRunsInTheIsolationOfItsCaller() async throws {
    let counter = Counter()
    let same = try await withKeys(.exclusive("a", "b"), .limited("c", to: 2), in: domain) {
      MainActor.preconditionIsolated()
      await Task.yield()
      counter.count += 1
      return counter
    }
    #expect(same === counter && counter.count == 1 && domain.isUnused)
  }

  @Test func tasksAndOperationsWaitForEachOtherInOrder_andReportsNameThem() async throws {
    let holder = await hold(.exclusive("key"), "save")
    let operation = NoteOperation("operation", journal).exclusive("key", in: domain)
    queue.addOperation(operation)
    let entry = queue.stallReport().roots.first
    #expect(entry?.waitsFor == ["save"] && entry?.cause == .exclusivity)
    #expect(entry?.description == "“operation” waits for the key “key”, held by “save”, which is running.")
    let waiter = immediately {
      try await withKeys(.exclusive("key"), in: domain, name: "waiter") { journal.write("waiter") }
    }
    #expect(domain.holders(of: "key") == ["save"] && domain.waiting(for: "key") == ["operation", "waiter"])
    try await holder.value(opening: gate)
    try await waiter.value
    await operation.finished()
    #expect(journal.entries == ["operation", "waiter"] && domain.isUnused)
  }

  @Test func manyTasksHoldAKeyEach() async throws {
    let names = (0..<70).map { "\($0)" }
    var tasks: [Task<Void, any Error>] = []
    for name in names { tasks.append(await hold(.exclusive(ExclusivityKey(name)), name)) }
    #expect(names.flatMap { domain.holders(of: ExclusivityKey($0)) } == names)
    gate.open()
    for task in tasks { try await task.value }
    #expect(domain.isUnused)
  }

  enum Visitor: CaseIterable {
    case none, cancellation, report, limit, urgentTask, largerLimit, operation
  }

  /// They have no entries in the table of keys until another kind of visitor comes.
  @Test(arguments: Visitor.allCases) func tasksThatWaitForOneKey_keepTheirOrder(_ visitor: Visitor) async throws {
    let holder = await hold()
    @Sendable func write(_ name: String, _ claim: ExclusivityClaim = .exclusive("key")) async throws {
      try await withKeys(claim, in: domain, name: name) { journal.write(name) }
    }
    var tasks = (0..<3).map { number in immediately { try await write("\(number)") } }
    var expected = ["0", "1", "2"]
    switch visitor {
    case .none: break
    case .cancellation:
      tasks[1].cancel()
      expected = ["0", "2"]
    case .report: #expect(domain.holders(of: "key") == ["holder"] && domain.waiting(for: "key") == expected)
    case .limit: domain.setLimit(1, for: "key")
    case .urgentTask:
      tasks.append(Task(priority: .high) { try await write("urgent") })
      await poll { domain.waiting(for: "key").count == 4 }
      expected.insert("urgent", at: 0)
    case .largerLimit:
      tasks.append(immediately { try await write("other", .limited("key", to: 2)) })
      expected.append("other")
    case .operation:
      queue.addOperation(NoteOperation("operation", journal).exclusive("key", in: domain))
      expected.append("operation")
    }
    try await holder.value(opening: gate)
    for task in tasks { _ = await task.result }
    await poll { domain.isUnused }
    #expect(journal.entries == expected)
  }

  @Test func withoutAName_theFunctionAndTheLineNameIt() async throws {
    try await withKeys(.exclusive("key"), in: domain, line: 7) {
      #expect(domain.holders(of: "key") == ["withoutAName_theFunctionAndTheLineNameIt(), line 7"])
    }
  }

  // MARK: Cancellation

  @Test func cancelledWhileItWaits_leavesAtOnce() async throws {
    let holder = await hold()
    let waiter = immediately { try await withKeys(.exclusive("key"), in: domain) { journal.write("never") } }
    #expect(domain.waiting(for: "key").count == 1)
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
    #expect(domain.waiting(for: "key").isEmpty && journal.entries.isEmpty)
    await #expect(throws: CancellationError.self) {
      try await cancelledTask { try await withKeys(.exclusive("free"), in: domain) { journal.write("never") } }.value
    }
    try await holder.value(opening: gate)
    #expect(domain.isUnused && journal.entries.isEmpty)
  }

  @Test func cancelledWhileItRuns_keepsTheKeysUntilTheBodyReturns() async throws {
    let holder = await hold { journal.write("\(Task.isCancelled)") }
    holder.cancel()
    #expect(domain.holders(of: "key") == ["holder"])
    try await holder.value(opening: gate)
    #expect(journal.entries == ["true"] && domain.isUnused)
  }

  @Test func racesOfACancellationAndAGrant_leaveNothingBehind() async {
    for _ in 0..<(isThorough ? 100_000 : 1_500) {
      let gate = Gate()
      let tasks = (0..<2).map { _ in
        Task { try await withKeys(.exclusive("key"), in: domain) { await gate.opened() } }
      }
      let release = Task { gate.open() }
      tasks[1].cancel()
      await release.value
      for task in tasks { _ = await task.result }
    }
    #expect(domain.isUnused)
  }

  @Test(arguments: [ExclusivityPolicy.replace, .latest])
  func aNewerOperation_endsTheWaitWithTheReason_andNoBody(policy: ExclusivityPolicy) async throws {
    let holder = await hold()
    let waiter = immediately {
      try await withKeys(.exclusive("key"), in: domain, name: "old") { journal.write("never") }
    }
    let newest = NoteOperation("newest", journal).exclusive("key", policy: policy, in: domain)
    queue.addOperation(newest)
    let result = await waiter.result
    if policy == .replace {
      #expect(result.code == .replaced && result.message.hasPrefix("“old” was cancelled"))
    } else {
      #expect(throws: CancellationError.self) { try result.get() }
    }
    #expect(!waiter.isCancelled && domain.holders(of: "key") == ["holder"], "a body keeps its keys")
    try await holder.value(opening: gate)
    await newest.finished()
    #expect(journal.entries == ["newest"] && domain.isUnused)
  }

  @Test func aBodyThatWasReplacedAndLendsItsKey_doesNotCountAfterItsEnd() async throws {
    let (began, gate) = (Gate(), Gate())
    let operations = ["first", "second"].map { name in
      HeldOperation().named(name).exclusive("key", policy: .replace, in: domain)
    }
    let loan = try await withKeys(.exclusive("key"), in: domain) {
      let loan = Task {
        try await withKeys(.exclusive("key"), in: domain) {
          began.open()
          await gate.opened()
        }
      }
      await began.opened()
      queue.addOperation(operations[0])
      return loan
    }
    try await loan.value(opening: gate)
    await operations[0].begun.opened()
    queue.addOperation(operations[1])
    #expect(operations[0].isCancelled && !operations[1].isCancelled)
    for operation in operations { operation.gate.open() }
    for operation in operations { await operation.finished() }
    #expect(domain.isUnused)
  }

  // MARK: Nesting

  @Test func whatTheBodyRuns_mayUseItsKeys() async throws {
    try await withKeys(.exclusive("key"), in: domain) {
      try await withKeys(.exclusive("key"), in: domain) { journal.write("nested") }
      let first = NoteOperation("first", journal).exclusive("key", in: domain)
      let group = GroupOperation([NoteOperation("member", journal).exclusive("key", in: domain)])
      try await queue.run(first ==> group)
      async let child: Void = withKeys(.exclusive("key"), in: domain) { journal.write("child") }
      try await child
      try await queue.run { try await withKeys(.exclusive("key"), in: domain) { journal.write("task") } }
      try await queue.withSlot(holding: .exclusive("key"), in: domain) { journal.write("slot") }
    }
    #expect(journal.entries == ["nested", "first", "member", "child", "task", "slot"] && domain.isUnused)
  }

  @Test func theBodyOfATaskOperation_mayUseTheKeysOfItsOperation() async throws {
    let task = TaskOperation { [domain] in try await withKeys(.exclusive("key"), in: domain) { 1 } }
    #expect(try await queue.run(task.exclusive("key", in: domain)) == 1)
    // A task that a synchronous closure creates may, too.
    let closure = ResultOperation { currentWork is KeyRequest }
    #expect(try await queue.run(closure.exclusive("key", in: domain)))
  }

  @Test(arguments: [false, true]) func whatStillRunsWhenTheBodyReturns_keepsTheKeys(hasSlot: Bool) async throws {
    let lent = HeldOperation().named("lent").exclusive("key", in: domain)
    lent.addObserver(OperationObserver(didFinish: { [journal] _ in journal.write("lent") }))
    let body: @Sendable () async throws -> Void = {
      Task { try await queue.run(lent) }
      await lent.begun.opened()
    }
    try await perform(body, hasSlot: hasSlot)
    let next = NoteOperation("next", journal).exclusive("key", in: domain)
    queue.addOperation(next)
    #expect(lent.isExecuting && domain.waiting(for: "key") == ["next"])
    await queue.run(settling: [AsyncOperation()])
    await next.finished(opening: lent.gate)
    #expect(journal.entries == ["lent", "next"] && domain.isUnused)
  }

  @Test func crossedWaits_endWithBothNames() async {
    let nested = { @Sendable (name: String, key: ExclusivityKey) in
      { @Sendable () async throws -> Void in try await withKeys(.exclusive(key), in: domain, name: name) {} }
    }
    let first = await hold(.exclusive("a"), "first", then: nested("first's b", "b"))
    let second = await hold(.exclusive("b"), "second", then: nested("second's a", "a"))
    gate.open()
    let results = [await first.result, await second.result]
    #expect(results.compactMap(\.code) == [.waitCycle])
    let (refused, holder) = results[0].code == nil ? ("second's a", "first") : ("first's b", "second")
    let message = results.map(\.message).joined()
    #expect(
      message.hasPrefix("“\(refused)” would wait forever") && message.contains("held by “\(holder)”"),
      "\(message)"
    )
    #expect(domain.isUnused)
  }

  /// A replaced task keeps its keys, so that what it waits for may wait for it.
  @Test(arguments: [false, true])
  func crossedWaitsOfAReplacedTask_endWithAnError(hasSlot: Bool) async {
    let first = await hold(.exclusive("a"), hasSlot: hasSlot) { try await withKeys(.exclusive("b"), in: domain) {} }
    let second = await hold(.exclusive("b")) { try await withKeys(.exclusive("a"), in: domain) {} }
    let newest = NoteOperation("newest", journal).exclusive("a", policy: .replace, in: domain)
    queue.addOperation(newest)
    gate.open()
    #expect([await first.result, await second.result].compactMap(\.code) == [.waitCycle])
    await newest.finished()
    #expect(journal.entries == ["newest"] && domain.isUnused)
  }

  @Test func aChainOfTasks_retainsNoneBeforeIt() async {
    /// Only the holder of the key accesses it.
    final class Chain: @unchecked Sendable { weak var first: AnyObject? }
    let chain = Chain()
    @Sendable func link(_ number: Int) {
      Task {
        try await withKeys(.exclusive("key"), in: domain) {
          if number == 0 { chain.first = currentWork }
          if number < 1_000 { return link(number + 1) }
          let count = KeyRegistry.withLock { currentWork.map { Array($0.enclosing).count } ?? 0 }
          #expect(count < 10 && chain.first == nil)
          gate.open()
        }
      }
    }
    link(0)
    await gate.opened()
    await poll { domain.isUnused }
  }
}
