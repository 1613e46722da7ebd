import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct RunTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  @Test func inACancelledTask_runExecutesNothing() async {
    let operation = NoteOperation("never", journal)
    let task = cancelledTask { [queue] in try await queue.run(operation) }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(journal.entries.isEmpty && operation.isFinished)
  }

  // MARK: Graphs

  /// Otherwise n operations behind one chain of n would cost n².
  @Test func aGraph_endsAtOperationsOfQueuesAndGroups_andLeavesThemWhereTheyAre() async throws {
    let (elsewhere, notes) = (OperationQueue.suspended(), ["a", "b", "c", "d"].map { NoteOperation($0, journal) })
    chain(notes)
    let (first, group) = (NoteOperation("first", journal), GroupOperation([notes[0]]))
    first ==> notes[0] ==> notes[3]
    elsewhere.addOperation(notes[1])
    queue.addByFoundation(notes[2])
    queue.addGraph(endingIn: notes[3])
    #expect(Set(queue.operations) == [notes[2], notes[3]] && elsewhere.operations == [notes[1]])
    #expect(first.stallReport().entries.first?.cause == .notEnqueued)
    elsewhere.isSuspended = false
    try await queue.run(group)
    await notes[3].finished()
    #expect(journal.entries == ["first", "a", "b", "c", "d"])
  }

  @Test func run_addsWhatTheOperationWaitsForAndLeavesPlainOperationsAlone() async throws {
    let (plain, elsewhere) = (BlockOperation {}, OperationQueue())
    let (first, last) = (NoteOperation("first", journal), NoteOperation("last", journal))
    [plain, first] ==> last
    let run = Task { try await queue.run(last) }
    await first.finished()
    #expect(queue.operations == [last])
    elsewhere.addOperation(plain)
    try await run.value
    #expect(journal.entries == ["first", "last"])
  }

  @Test(arguments: ContainerTests.Kind.allCases, ["early", "late", "late and plain"])
  func run_addsWhatMembersOfGroupsWaitFor(in kind: ContainerTests.Kind, dependency: String) async throws {
    for depth in 1...3 {
      let free = NoteOperation("free", journal)
      let isPlain = dependency == "late and plain"
      let member: Operation = isPlain ? plain("member", journal) : NoteOperation("member", journal)
      if dependency == "early" { free ==> member }
      let group = (1..<depth).reduce(GroupOperation([member])) { inner, _ in GroupOperation([inner]) }
      if dependency != "early" { free ==> member }
      try await kind.make().run(group)
      #expect(journal.entries.suffix(2) == ["free", "member"])
    }
  }

  private final class CastingQueue: OperationQueue, @unchecked Sendable {
    let added = Journal<String>()

    override func addOperation(_ operation: Operation) {
      added.write(operation.name ?? "")
      if let own = operation as? AsyncOperation { super.addOperation(own) } else { super.addOperation(operation) }
    }
  }

  @Test func anOverrideThatPassesAnAsyncOperationToSuper_addsIt() async throws {
    let queue = CastingQueue()
    let (first, last) = (NoteOperation("first", journal), NoteOperation("last", journal))
    first ==> last
    queue.addOperation(first)
    try await queue.run(last)
    queue.addOperation(BlockOperation {}.named("plain"))
    await queue.finished()
    #expect(journal.entries == ["first", "last"] && queue.added.entries == ["first", "last", "plain"])
  }

  // MARK: Queues

  @Test func aCancelledCaller_returnsAtOnce() async {
    let queue = OperationQueue.limited(to: 1)
    let (held, waiting) = (await queue.holding(), ResultOperation { 1 })
    let run = immediately { try await queue.run(waiting) }
    let others = [
      immediately { _ = try await waiting.value }, immediately { try await waiting.completed() },
      immediately { try await held.completed() },
    ]
    for task in others { task.cancel() }
    for task in others { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(!waiting.isCancelled && !held.isCancelled)
    run.cancel()
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(waiting.isCancelled && !waiting.isFinished && held.isExecuting)
    await waiting.finished(opening: held.gate)
  }

  @Test func finished_waitsForAnyOperation_untilItsTaskIsCancelled() async {
    let (plain, classic, own) = (BlockOperation {}, ClassicOperation(), HeldOperation())
    queue.addOperations([plain, classic, own])
    await plain.finished()
    await own.begun.opened()
    let waits: [@Sendable () async -> Void] = [
      { await classic.finished() }, { await own.finished() }, { [queue] in await queue.finished() },
    ]
    for call in waits {
      let waiting = Task { await call() }
      waiting.cancel()
      await waiting.value
    }
    #expect(!classic.isFinished && !own.isFinished)
    for gate in [classic.gate, own.gate] { gate.open() }
    for call in waits { await call() }
    #expect(queue.operationCount == 0 && classic.isFinished && own.isFinished)
  }

  @Test func finished_waitsForOperationsAddedMeanwhile() async {
    let held = HeldOperation()
    held.addObserver(didFinish: { [journal] _ in journal.write("held") })
    queue.addOperation(ResultOperation { [queue] in queue.addOperation(held) })
    let waiting = Task { await queue.finished() }
    await held.begun.opened()
    held.gate.open()
    await waiting.value
    // Foundation takes an operation out of its queue before the observers are notified.
    await held.finished()
    #expect(journal.entries == ["held"])
    await OperationQueue().finished()
  }

  // MARK: The lost wake-up

  // Foundation on Linux loses a wake-up too rarely to wait for it (7 in 276,000). The test checks instead that the
  // methods of the package make Foundation check the operation once more when it is in the queue.

  /// Makes Foundation overlook, between its enqueueing and the end of the method, that an operation has become ready.
  /// Forgets that Foundation has checked an operation that has no dependencies.
  private final class ForgetfulQueue: OperationQueue, @unchecked Sendable {
    override func addOperation(_ operation: Operation) {
      super.addOperation(operation)
      overlook(operation)
    }

    override func addOperations(_ operations: [Operation], waitUntilFinished: Bool) {
      super.addOperations(operations, waitUntilFinished: waitUntilFinished)
      for operation in operations { overlook(operation) }
    }

    private func overlook(_ operation: Operation) {
      guard let operation = operation as? AsyncOperation else { return }
      let gate = operation.core.withLock { core in
        defer { core.bridge = FoundationBridge() }
        return core.bridge.gate
      }
      guard let gate else { return }
      operation.core.withLock { _ = $0.bridge.makeGate() }
      // Foundation records that the operation must wait, and is not notified when it need not any more.
      gate.start()
      operation.core.withLock { core in
        _ = core.countDown(by: 1)
        _ = core.bridge.gateDidOpen(isWaiting: false)
      }
    }
  }

  @Test func anOperationThatWaited_isCheckedOnceMoreAndAReadyOneIsNot() async {
    let methods: [(OperationQueue, AsyncOperation) -> Void] = [{ $0.addOperation($1) }, { $0.addOperations([$1]) }]
    for add in methods {
      let (queue, waiting) = (ForgetfulQueue(), AsyncOperation())
      AsyncOperation() ==> waiting
      add(queue, waiting)
      await poll { waiting.isFinished }
    }
    let (queue, ready) = (ForgetfulQueue(), AsyncOperation())
    queue.isSuspended = true
    queue.addOperation(ready)
    #expect(ready.core.withLock { $0.bridge.record } == .unread)
    await queue.drained()
  }

  // MARK: Closures: the overload that the compiler selects

  private static var isOnQueue: Bool { OperationQueue.current != nil }
  private static func synchronous() -> Bool { isOnQueue }
  @Sendable private static func asynchronous() async -> Bool { isOnQueue }

  @Test func aClosureWithoutAwait_runsOnAThreadOfTheQueue() async throws {
    let expression = try await queue.run { Self.isOnQueue }
    let statements = try await queue.run {
      if !Self.isOnQueue { throw TestError("on a thread of the tasks") }
      return Self.isOnQueue
    }
    #expect(expression && statements)
    #expect(try await queue.run(Self.synchronous))
    #expect(try await queue.addTask { Self.isOnQueue }.value)
    #expect(try await queue.addTask("named") { Self.isOnQueue }.value)
  }

  @Test func aClosureWithAwait_runsInATask() async throws {
    let expression = try await queue.run { await Self.asynchronous() }
    let statements = try await queue.run {
      await Task.yield()
      return Self.isOnQueue
    }
    #expect(!expression && !statements)
    #expect(try await queue.run(Self.asynchronous) == false)
    let task: TaskOperation = queue.addTask {
      await Task.yield()
      return Self.isOnQueue
    }
    #expect(try await task.value == false)
  }

  @Test(arguments: ["task", "result", "transform", "map"])
  func aSynchronousClosure_seesThatItsTaskOrItsOperationIsCancelled(kind: String) async {
    let (gate, seen) = (Gate(), Journal<Bool>())
    let closure: @Sendable () throws -> Void = {
      seen.write(Task.isCancelled)
      gate.pass()
      seen.write(Task.isCancelled)
      try Task.checkCancellation()
    }
    let transform = TransformOperation<Int, Void> { _ in try closure() }
    transform.input = 1
    let operation: ResultOperation<Void> =
      switch kind {
      case "transform": transform
      case "map": ResultOperation { 1 }.map { _ in try closure() }
      default: ResultOperation(closure)
      }
    let run: Task<Void, any Error> = Task {
      if kind == "task" { try await queue.run(closure) } else { try await queue.run(operation) }
    }
    await seen.reaches(1)
    if kind == "task" { run.cancel() } else { operation.cancel() }
    await #expect(throws: CancellationError.self) { try await run.value(opening: gate) }
    // A call whose task is cancelled does not wait for the closure.
    #expect(await seen.all(2) == [false, true])
  }

  @Test func aClosureOfAnOperationMadeOutsideOfATask_inheritsNoValues() async throws {
    let values = Journal<String>()
    let write = { @Sendable in values.write(Request.id) }
    let transform = TransformOperation<Int, Void> { _ in write() }
    queue.isSuspended = true
    let operations = try await onThread { [queue] () -> [AsyncOperation] in
      transform.input = 1
      let conditional = AsyncOperation()
      conditional.addCondition("any") { _ in write() }
      let closures = [ResultOperation(write), TaskOperation { write() }, transform, queue.addTask { write() }]
      return [conditional] + closures
    }.get()
    await Request.$id.withValue("starter") {
      for operation in operations.dropLast() { operation.start() }
      queue.isSuspended = false
      for operation in operations { await operation.finished() }
    }
    #expect(values.entries == Array(repeating: "none", count: 5))
  }

  @Test func aSynchronousClosure_seesTheTaskLocalValuesOfItsCaller() async throws {
    let run = try await Request.$id.withValue("caller") { try await queue.run { Request.id } }
    #expect(run == "caller")
    let added = Request.$id.withValue("adder") { queue.addTask { Request.id } }
    #expect(try await added.value == "adder")
  }

  @Test func aSynchronousClosureOfTheMainQueue_isOnTheMainActor() async throws {
    try await OperationQueue.main.run { MainActor.assumeIsolated {} }
  }
}
