#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Foundation
import Operations
import OperationsTestSupport
import Testing

/// A programmer's mistake, and what the sentence of the trap must contain.
private struct Mistake: Sendable {
  let name: String
  let sentence: [String]
  let body: @Sendable () async throws -> Void

  init(_ name: String, says sentence: String..., body: @escaping @Sendable () async throws -> Void) {
    (self.name, self.sentence, self.body) = (name, sentence, body)
  }

  /// A mistake with a value that `make` creates.
  init<T: Sendable>(
    _ name: String,
    says sentence: String...,
    with make: @autoclosure @escaping @Sendable () -> T,
    body: @escaping @Sendable (T) async throws -> Void
  ) {
    (self.name, self.sentence, self.body) = (name, sentence, { try await body(make()) })
  }
}

private func x() -> ResultOperation<Int> { ResultOperation { 1 }.named("x") }
private func plain() -> Operation { BlockOperation {}.named("x") }

/// Returns an operation that has been started, and never finishes.
private func started() -> AsyncOperation {
  let operation = AsyncBlockOperation { _ in }.named("x")
  operation.start()
  return operation
}

/// Calls `body` with an operation that has finished.
private func afterItsEnd(_ body: (ResultOperation<Int>) -> Void) async throws {
  let x = x()
  _ = try await OperationQueue().run(x)
  body(x)
}

/// Calls `body` with the member of a group that has not started.
private func inGroup(_ body: (ResultOperation<Int>) -> Void) {
  let x = x()
  let group = GroupOperation([x])
  withExtendedLifetime(group) { body(x) }
}

/// Calls `body` while an operation executes.
private func inExecution(_ body: @escaping @Sendable (AsyncOperation) -> Void) async {
  let operation = AsyncBlockOperation { operation in
    body(operation)
    operation.finish()
  }
  OperationQueue().addOperation(operation.named("x"))
  await operation.finished()
}

private func backoff(
  from initial: Duration = .seconds(1),
  to cap: Duration = .seconds(1),
  times multiplier: Double = 2,
  jitter: Double = 0
) -> Backoff {
  .exponential(initial: initial, multiplier: multiplier, cap: cap, jitter: jitter)
}

/// Each mistake traps with a sentence that names the operation and says what to do.
@Suite(.timeLimit(.minutes(10)))
struct MisuseTests {
  private static let numbers = [
    Mistake("a limit below 0", says: "“g” cannot run -2 members at once", "from 0", "defaultMaxConcurrent") {
      GroupOperation([]).named("g").maxConcurrentOperationCount = -2
    },
    Mistake("no attempt", says: "cannot try 0 times", "1 attempt or more") {
      _ = RetryOperation(attempts: 0) { _ in x() }
    },
    Mistake("a capacity of 0", says: "a capacity of 0", "at least 1") { _ = EventCapacity(0, whenFull: .suspend) },
    Mistake("the pause after attempt 0", says: "no pause after attempt 0", "the first attempt is 1") {
      _ = backoff().delay(after: 0)
    },
    Mistake("a constant backoff below 0", says: "A backoff cannot wait -1.0 seconds", "zero up") {
      _ = Backoff.constant(.seconds(-1))
    },
    Mistake("a backoff that begins below 0", says: "A backoff waits from zero up") { _ = backoff(from: .shortest) },
    Mistake("a backoff that ends below 0", says: "A backoff waits from zero up") { _ = backoff(to: .seconds(-1)) },
    Mistake("a multiplier of 0", says: "multiplier is more than zero, not 0.0") { _ = backoff(times: 0) },
    Mistake("a multiplier that is no number", says: "multiplier is more than zero, not nan") {
      _ = backoff(times: .nan)
    },
    Mistake("an infinite multiplier", says: "multiplier is more than zero", "inf") { _ = backoff(times: .infinity) },
    Mistake("a jitter above 1", says: "jitter is a part of the pause, from 0 to 1, not 1.5") {
      _ = backoff(jitter: 1.5)
    },
    Mistake("a jitter below 0", says: "from 0 to 1, not -0.5") { _ = backoff(jitter: -0.5) },
    Mistake("a jitter that is no number", says: "from 0 to 1, not nan") { _ = backoff(jitter: .nan) },
    Mistake("a watchdog with no limit", says: "cannot have a limit of 0.0 seconds", "greater than zero") {
      _ = SchedulerWatchdog(limit: .zero) { _ in }
    },
    Mistake("a clock moved back", says: "A clock cannot go back, by -1.0 seconds") {
      ManualClock().advance(by: .seconds(-1))
    },
    Mistake("a clock moved to a time that has passed", says: "A clock cannot go back") {
      ManualClock().advance(to: .init(offset: .nanoseconds(-1)))
    },
    Mistake("a clock moved back with its schedulers", says: "A clock cannot go back, by -1.0 seconds") {
      let clock = ManualClock()
      await clock.advance(by: .seconds(-1), draining: SerialScheduler(name: "s", clock: clock))
    },
    Mistake("an empty aggregate", says: "An AggregateError needs a failure") { _ = AggregateError([]) },
  ]

  private static let itself = "“x” cannot wait for itself"

  private static let dependencies = [
    Mistake("x ==> x", says: itself, "another", with: x()) { $0 ==> $0 },
    Mistake("x ==> [x]", says: itself, with: x()) { $0 ==> [$0] },
    Mistake("[x] ==> x", says: itself, with: x()) { [$0] ==> $0 },
    Mistake("a plain x ==> x", says: itself, with: plain()) { $0 ==> $0 },
    Mistake("x.waits(for: x)", says: itself, with: x()) { $0.waits(for: $0) },
    Mistake("x.addDependency(x)", says: itself, with: x()) { $0.addDependency($0) },
    Mistake("a group that waits for itself", says: itself, with: GroupOperation([]).named("x")) {
      $0.addDependency($0)
    },
    Mistake("passing to itself", says: itself, with: TransformOperation { (value: Int) in value }.named("x")) {
      $0.pass(to: $0)
    },
    Mistake("writing to itself", says: itself, with: x()) { $0.pass(to: $0) { _, _ in } },
    Mistake("an adapter from x to x", says: itself, "another operation", with: x()) {
      _ = AdapterOperation(from: $0, to: $0) { _, _ in }
    },
    Mistake("an adapter from a plain x to x", says: itself, with: plain()) {
      _ = AdapterOperation(from: $0, to: $0) { _, _ in }
    },
    Mistake("a flatMap that returns itself", says: itself, with: Journal<ResultOperation<Int>>()) { journal in
      journal.write(x().flatMap { _ in journal.entries[0] }.named("x"))
      _ = try await OperationQueue().run(graphEndingIn: journal.entries[0])
    },
    Mistake("a dependency in execute()", says: "“x” has been started and can no longer wait for “y”", "before") {
      await inExecution { $0.waits(for: AsyncOperation().named("y")) }
    },
    Mistake("a dependency in a condition", says: "“x” has been started and can no longer wait for", with: x()) { x in
      x.addCondition(OperationCondition(name: "c") { $0.waits(for: AsyncOperation()) })
      _ = try await OperationQueue().run(x)
    },
    Mistake("a dependency after the end", says: "“x” has been started and can no longer wait for") {
      try await afterItsEnd { AsyncOperation() ==> $0 }
    },
    Mistake("a value for a started operation", says: "“x” has been started and can no longer wait for “y”") {
      ResultOperation { 1 }.named("y").pass(to: started()) { _, _ in }
    },
  ]

  private static let members = [
    Mistake("a group in itself", says: "“g” cannot be a member of itself", "another group") {
      let group = GroupOperation([]).named("g")
      group.addOperation(group)
    },
    Mistake("a group in itself, as the end of a graph", says: "“g” cannot be a member of itself") {
      let group = GroupOperation([]).named("g")
      group.addGraph(endingIn: group)
    },
    Mistake("a group in one that is in one that is in it", says: "“a” cannot be a member of itself") {
      let groups = ["a", "b", "c"].map { GroupOperation([]).named($0) }
      groups[0].addOperation(groups[1])
      groups[1].addOperation(groups[2])
      groups[2].addOperation(groups[0])
    },
    Mistake("a running group in one that is in it", says: "“a” has been started already") {
      let (outer, inner) = (GroupOperation([]).named("a"), GroupOperation([]).named("b"))
      outer.addOperation(inner)
      inner.addOperation(AsyncBlockOperation { _ in inner.addOperation(outer) })
      OperationQueue().addOperation(outer)
      await outer.finished()
    },
    Mistake("a member of the same group", says: "“x” is in this group already", "make a new one", with: x()) {
      GroupOperation([]).addOperations([$0, $0])
    },
    Mistake("a plain member of the same group", says: "“x” is in this group already", with: plain()) {
      GroupOperation([$0]).addOperation($0)
    },
    Mistake("a member of another group", says: "“x” is in a group already", "make a new one") {
      inGroup { GroupOperation([]).addOperation($0) }
    },
    Mistake("a member that is in a queue", says: "“x” is in a queue already", "make a new one", with: x()) {
      OperationQueue.suspended().addOperation($0)
      GroupOperation([]).addOperation($0)
    },
    Mistake("a member that executes", says: "“x” has been started already", "make a new one") {
      GroupOperation([]).addOperation(started())
    },
    Mistake("a member that has finished", says: "“x” has been started already", "make a new one") {
      try await afterItsEnd { GroupOperation([]).addOperation($0) }
    },
    Mistake("a plain member that has finished", says: "“x” has been started already", with: plain()) {
      $0.start()
      GroupOperation([]).addOperation($0)
    },
    Mistake(
      "a member for a group that has finished",
      says: "“g” has finished and takes no more members",
      "“x”",
      "new group",
      with: GroupOperation([AsyncOperation()]).named("g")
    ) { group in
      try await OperationQueue().run(group)
      group.addOperations([x()])
    },
    Mistake("a weight for a member", says: "“x” is in a group, which has taken its weight") {
      inGroup { $0.progressWeight = 2 }
    },
  ]

  private static let starts = [
    Mistake("twice in a queue, one by one", says: "“x” is in a queue already", "make a new one", with: x()) {
      let queue = OperationQueue.suspended()
      queue.addOperation($0)
      queue.addOperation($0)
    },
    Mistake("twice in a queue, at once", says: "“x” is in a queue already", with: x()) {
      OperationQueue.suspended().addOperations([$0, $0])
    },
    Mistake("a plain one twice in a queue", says: "“x” is in this call already", "make a new one", with: plain()) {
      OperationQueue().addOperations([$0, AsyncOperation(), $0])
    },
    Mistake("a started one in a queue", says: "“x” has been started already") {
      OperationQueue().addOperation(started())
    },
    Mistake("a plain finished one in a queue", says: "“x” has been started already and cannot be", with: plain()) {
      $0.start()
      OperationQueue().addOperations([$0])
    },
    Mistake("running what is in a queue", says: "“x” is in a queue already", with: x()) {
      OperationQueue.suspended().addOperation($0)
      _ = try await OperationQueue().run($0)
    },
    Mistake("sharing what has run", says: "“x” has been started already", "make a new one", with: x()) { x in
      _ = try await OperationQueue().run(x)
      _ = try await OperationQueue().run(sharing: "k", in: ExclusivityDomain()) { x }
    },
    Mistake("the same operation for each attempt", says: "“x” has been started already", "make a new one") {
      let attempt = ResultOperation<Int> { throw TestError("again") }.named("x")
      _ = try await OperationQueue().run(RetryOperation(attempts: 2) { _ in attempt })
    },
    Mistake("an attempt that is the whole", says: "“r” has been started already", "make a new one") {
      let journal = Journal<ResultOperation<Int>>()
      journal.write(RetryOperation(attempts: 2) { _ in journal.entries[0] }.named("r"))
      _ = try await OperationQueue().run(journal.entries[0])
    },
    Mistake("sharing another type under one key", says: "“k” is shared by runs of another type", "another key") {
      let domain = ExclusivityDomain()
      _ = try await OperationQueue().run(sharing: "k", in: domain) {
        TaskOperation {
          _ = try await OperationQueue().run(sharing: "k", in: domain) { ResultOperation { "text" } }
          return 1
        }
      }
    },
    Mistake("a key for a member", says: "cannot be given the key “k”") { inGroup { $0.exclusive("k") } },
    Mistake("a key for a finished one", says: "cannot be given the key “k”") {
      try await afterItsEnd { $0.exclusive("k") }
    },
    Mistake("start() of one that waits", says: "“x” is not ready: it waits for “y”", "Add it to a queue", with: x()) {
      AsyncOperation().named("y") ==> $0
      $0.start()
    },
    Mistake("start() of one that waits for a key", says: "“x” is not ready: it waits for the key “k”", "Leave it") {
      let (holder, x) = (AsyncBlockOperation { _ in }, x())
      OperationQueue().addOperation(holder.exclusive("k"))
      OperationQueue().addOperation(x.exclusive("k"))
      x.start()
    },
    Mistake("start() of a member", says: "“x” is a member of a group, which starts it") { inGroup { $0.start() } },
    Mistake("start(), twice", says: "“x” has been started before", "make a new one") { started().start() },
    Mistake("a condition in execute()", says: "“x” has been started", "too late for its condition “c”", "before") {
      await inExecution { $0.addCondition(OperationCondition(name: "c") { _ in }) }
    },
    Mistake("a task with nothing to run", says: "“x” has nothing to run", "override run()") {
      _ = try await OperationQueue().run(TaskOperation<Int>().named("x"))
    },
    Mistake("a transformation of nothing", says: "“x” has nothing to do", "Override transform(_:)") {
      let operation = TransformOperation<Int, Int>().named("x")
      operation.input = 1
      _ = try await OperationQueue().run(operation)
    },
  ]

  private static let schedulers = [
    Mistake("a scheduler of two", says: "The queue of the scheduler “s” runs one operation at a time", "another queue")
    {
      SerialScheduler(name: "s").queue.maxConcurrentOperationCount = 2
    },
    Mistake("a scheduler of none", says: "cannot be 0. Use another queue") {
      SerialScheduler(name: "s").queue.maxConcurrentOperationCount = 0
    },
    Mistake("a scheduler without a limit", says: "cannot be -1. Use another queue") {
      SerialScheduler(name: "s").queue.maxConcurrentOperationCount = OperationQueue.defaultMaxConcurrentOperationCount
    },
    Mistake("another Dispatch queue", says: "“s” depends on its own dispatch queue", "another queue") {
      unsafe SerialScheduler(name: "s").queue.underlyingQueue = .global()
    },
    Mistake("waiting from within until all is done", says: "“s” cannot wait for its own queue", "another thread") {
      let scheduler = SerialScheduler(name: "s")
      try await scheduler.run { scheduler.queue.waitUntilAllOperationsAreFinished() }
    },
    Mistake("waiting from within for an operation", says: "“s” cannot wait for operations", "Pass false") {
      let scheduler = SerialScheduler(name: "s")
      try await scheduler.run { scheduler.queue.addOperations([Operation()], waitUntilFinished: true) }
    },
    Mistake("main suspended", says: "The main scheduler cannot be suspended", "of your own") {
      SerialScheduler.main.isSuspended = true
    },
    Mistake("main shut down", says: "The main scheduler cannot be shut down", "of your own") {
      SerialScheduler.main.shutDown(.discard)
    },
  ]

  private static let names = [
    Mistake("a name with a NUL", says: "“a\u{2400}b” cannot count -1 in a progress", "from 0 up") {
      AsyncOperation().named("a\0b").progressWeight = -1
    },
    Mistake("a message with a NUL", says: "a\u{2400}b belongs to the scheduler “s\u{2400}”", "Schedule an event") {
      SerialScheduler(name: "s\0").preconditionIsCurrent("a\0b")
    },
    Mistake("an empty name", says: "“AsyncOperation” cannot count -1") {
      AsyncOperation().named("").progressWeight = -1
    },
    Mistake("a name with everything", says: "“\"“”\\%s%n\u{202E}😀” cannot count -1") {
      AsyncOperation().named("\"“”\\%s%n\u{202E}😀").progressWeight = -1
    },
    Mistake("a name of a megabyte", says: "xxx” cannot count -1", "from 0 up") {
      AsyncOperation().named(String(repeating: "x", count: 1 << 20)).progressWeight = -1
    },
  ]

  private static let all = numbers + dependencies + members + starts + schedulers + names

  @Test(arguments: all.map(\.name)) func aMistake(_ name: String) async throws {
    let mistake = try #require(Self.all.first { $0.name == name })
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [name] in
      try await Self.all.first { $0.name == name }?.body()
    }
    for part in mistake.sentence + ["Fatal error: "] { expectSentence(part, in: result) }
  }
}
#endif
