import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Keys that a task holds while it runs code of its own.
@Suite(.timeLimit(.minutes(5)))
struct TaskKeysTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  /// Holds keys until the gate is opened.
  private func hold(
    _ claim: ExclusivityClaim,
    _ name: String = "holder",
    until gate: Gate,
    then next: @escaping @Sendable () async throws -> Void = {}
  ) async -> Task<Void, any Error> {
    let begun = Gate()
    let task = immediately {
      try await withKeys(claim, in: domain, name: name) {
        begun.open()
        await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
        try await next()
      }
    }
    await begun.opened()
    return task
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
    #expect(same === counter && counter.count == 1)
    #expect(domain.isUnused)
  }

  @Test func tasksAndOperationsWaitForEachOtherInOrder() async throws {
    let gate = Gate()
    let holder = await hold(.exclusive("key"), until: gate)
    let operation = NoteOperation("operation", journal).exclusive("key", in: domain).named("operation")
    queue.addOperation(operation)
    let waiter = immediately {
      try await withKeys(.exclusive("key"), in: domain, name: "waiter") { journal.write("waiter") }
    }
    #expect(domain.holders(of: "key") == ["holder"] && domain.waiting(for: "key") == ["operation", "waiter"])
    gate.open()
    try await holder.value
    try await waiter.value
    await operation.finished()
    #expect(journal.entries == ["operation", "waiter"])
    #expect(domain.isUnused)
  }

  @Test func withoutAName_theFunctionAndTheLineNameIt() async throws {
    try await withKeys(.exclusive("key"), in: domain, line: 7) {
      #expect(domain.holders(of: "key") == ["withoutAName_theFunctionAndTheLineNameIt(), line 7"])
    }
  }

  // MARK: Cancellation

  @Test func cancelledWhileItWaits_leavesAtOnce() async throws {
    let gate = Gate()
    let holder = await hold(.exclusive("key"), until: gate)
    let waiter = immediately { try await withKeys(.exclusive("key"), in: domain) { journal.write("never") } }
    #expect(domain.waiting(for: "key").count == 1)
    waiter.cancel()
    await #expect(throws: CancellationError.self) { try await waiter.value }
    #expect(domain.waiting(for: "key").isEmpty && journal.entries.isEmpty)
    await #expect(throws: CancellationError.self) {
      try await cancelledTask { try await withKeys(.exclusive("free"), in: domain) { journal.write("never") } }.value
    }
    gate.open()
    try await holder.value
    #expect(domain.isUnused && journal.entries.isEmpty)
  }

  @Test func cancelledWhileItRuns_keepsTheKeysUntilTheBodyReturns() async throws {
    let gate = Gate()
    let holder = await hold(.exclusive("key"), until: gate) { journal.write("\(Task.isCancelled)") }
    holder.cancel()
    #expect(domain.holders(of: "key") == ["holder"])
    gate.open()
    try await holder.value
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

  @Test func aReplacedWaiter_receivesTheReason() async throws {
    let gate = Gate()
    let holder = await hold(.exclusive("key"), until: gate)
    let waiter = immediately { try await withKeys(.exclusive("key"), in: domain, name: "old") {} }
    let newest = NoteOperation("newest", journal).exclusive("key", policy: .replace, in: domain)
    queue.addOperation(newest)
    let error = await #expect(throws: OperationError.self) { try await waiter.value }
    #expect(error?.code == .replaced && error?.message.hasPrefix("“old” was cancelled") == true)
    #expect(domain.holders(of: "key") == ["holder"], "a body keeps its keys")
    gate.open()
    try await holder.value
    await newest.finished()
    #expect(domain.isUnused)
  }

  @Test func aWaiterThatIsNotTheLatest_receivesACancellationErrorWithoutBeingCancelled() async throws {
    let gate = Gate()
    let holder = await hold(.exclusive("key"), until: gate)
    let waiter = immediately { try await withKeys(.exclusive("key"), in: domain) { journal.write("never") } }
    let newest = NoteOperation("newest", journal).exclusive("key", policy: .latest, in: domain)
    queue.addOperation(newest)
    await #expect(throws: CancellationError.self) { try await waiter.value }
    #expect(!waiter.isCancelled && domain.holders(of: "key") == ["holder"])
    gate.open()
    try await holder.value
    await newest.finished()
    #expect(journal.entries == ["newest"] && domain.isUnused)
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
  }

  @Test(arguments: [false, true]) func whatStillRunsWhenTheBodyReturns_keepsTheKeys(hasSlot: Bool) async throws {
    let lent = HeldOperation().named("lent").exclusive("key", in: domain)
    lent.addObserver(OperationObserver(didFinish: { [journal] _ in journal.write("lent") }))
    let body = { @Sendable [queue] () async throws -> Void in
      Task { try await queue.run(lent) }
      await lent.begun.opened()
    }
    if hasSlot {
      try await OperationQueue.limited(to: 1).withSlot(holding: .exclusive("key"), in: domain, body)
    } else {
      try await withKeys(.exclusive("key"), in: domain, body)
    }
    let next = NoteOperation("next", journal).exclusive("key", in: domain)
    queue.addOperation(next)
    #expect(lent.isExecuting && domain.waiting(for: "key") == ["next"])
    await queue.run(settling: [AsyncOperation()])
    lent.gate.open()
    await next.finished()
    #expect(journal.entries == ["lent", "next"] && domain.isUnused)
  }

  @Test func aDetachedTask_waits() async throws {
    let detached = try await withKeys(.exclusive("key"), in: domain) {
      let detached = Task.detached { try await withKeys(.exclusive("key"), in: domain, name: "detached") {} }
      await poll { domain.waiting(for: "key") == ["detached"] }
      return detached
    }
    try await detached.value
    #expect(domain.isUnused)
  }

  /// The two wait for each other's keys, or for each other to give up the key that they share.
  @Test(arguments: [false, true]) func crossedWaits_endWithBothNames(isShared: Bool) async throws {
    let gate = Gate()
    let nested = { @Sendable (name: String, key: ExclusivityKey) in
      { @Sendable () async throws -> Void in try await withKeys(.exclusive(key), in: domain, name: name) {} }
    }
    let (a, b) = isShared ? ("db", "db") : (ExclusivityKey("a"), ExclusivityKey("b"))
    let claims: [ExclusivityClaim] = isShared ? [.shared(a), .shared(b)] : [.exclusive(a), .exclusive(b)]
    let first = await hold(claims[0], "first", until: gate, then: nested("first's b", b))
    let second = await hold(claims[1], "second", until: gate, then: nested("second's a", a))
    gate.open()
    let errors = [await first.result, await second.result].compactMap { result -> OperationError? in
      if case .failure(let error as OperationError) = result { error } else { nil }
    }
    #expect(errors.map(\.code) == [.waitCycle])
    let isSecond = errors.first?.message.hasPrefix("“second's a”") == true
    #expect(errors.first?.message.contains(isSecond ? "“first” holds" : "“second” holds") == true)
    #expect(domain.isUnused)
  }

  /// A replaced task keeps its keys, so that what it waits for may wait for it.
  @Test(arguments: [false, true])
  func crossedWaitsOfAReplacedTask_endWithAnError(hasSlot: Bool) async throws {
    let gate = Gate()
    let body = { @Sendable (begun: Gate, key: ExclusivityKey) in
      { @Sendable () async throws -> Void in
        begun.open()
        await gate.opened()
        try await withKeys(.exclusive(key), in: domain) {}
      }
    }
    let begun = [Gate(), Gate()]
    let tasks = [
      Task {
        let body = body(begun[0], "b")
        if hasSlot {
          try await queue.withSlot(holding: .exclusive("a"), in: domain, body)
        } else {
          try await withKeys(.exclusive("a"), in: domain, body)
        }
      },
      Task { try await withKeys(.exclusive("b"), in: domain, body(begun[1], "a")) },
    ]
    for gate in begun { await gate.opened() }
    let newest = NoteOperation("newest", journal).exclusive("a", policy: .replace, in: domain)
    queue.addOperation(newest)
    gate.open()
    let errors = [await tasks[0].result, await tasks[1].result].compactMap { $0.code }
    #expect(errors == [.waitCycle])
    await newest.finished()
    #expect(journal.entries == ["newest"] && domain.isUnused)
  }

  @Test func aChainOfTasks_retainsNoneBeforeIt() async {
    /// Only the holder of the key accesses it.
    final class Chain: @unchecked Sendable {
      weak var first: AnyObject?
      let end = Gate()
      let domain: ExclusivityDomain

      init(_ domain: ExclusivityDomain) { self.domain = domain }

      func link(_ number: Int) {
        Task {
          try await withKeys(.exclusive("key"), in: domain) {
            if number == 0 { first = currentWork }
            if number < 1_000 { return link(number + 1) }
            #expect(currentWork?.enclosing.count ?? 0 < 10 && first == nil)
            end.open()
          }
        }
      }
    }
    let chain = Chain(domain)
    chain.link(0)
    await chain.end.opened()
    await poll { domain.isUnused }
  }

  // MARK: Reports

  @Test func aStallReport_namesTheTaskThatHoldsTheKey() async throws {
    let gate = Gate()
    let holder = await hold(.exclusive("key"), "save", until: gate)
    let operation = NoteOperation("waiting", journal).exclusive("key", in: domain).named("waiting")
    queue.addOperation(operation)
    let entry = queue.stallReport().entries.first
    #expect(entry?.waitsFor == ["save"] && entry?.cause == .exclusivity)
    #expect(entry?.description == "“waiting” waits for the key “key”, held by “save”, which is running.")
    gate.open()
    try await holder.value
    await operation.finished()
  }
}
