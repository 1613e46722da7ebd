#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Foundation
import Operations
import OperationsTestSupport
import Testing

private func x() -> ResultOperation<Int> { ResultOperation { 1 }.named("x") }
private func plain() -> Operation { BlockOperation {}.named("x") }
private func s() -> SerialScheduler { SerialScheduler(name: "s") }

/// Returns an operation that has been started, and never finishes.
private func started() -> AsyncOperation {
  let operation = AsyncBlockOperation { _ in }.named("x")
  operation.start()
  return operation
}

/// A class that still notifies Foundation itself, as its former base class needed.
private final class Migrated: AsyncOperation, @unchecked Sendable {
  override func execute() {
    willChangeValue(forKey: "isExecuting")
    didChangeValue(forKey: "isExecuting")
    finish()
  }
}

/// Calls `body` with the member of a group that has not started.
private func inGroup(_ body: (ResultOperation<Int>) -> Void) {
  let x = x()
  let group = GroupOperation([x]).named("g")
  withExtendedLifetime(group) { body(x) }
}

/// Gives an operation with this name a negative weight.
private func weigh(_ name: String) { AsyncOperation().named(name).progressWeight = -1 }

private func backoff(
  from initial: Duration = .seconds(1),
  to cap: Duration = .seconds(1),
  times multiplier: Double = 2,
  jitter: Double = 0
) -> Backoff { .exponential(initial: initial, multiplier: multiplier, cap: cap, jitter: jitter) }

/// Each mistake traps with a sentence that names the operation and says what to do.
@Suite(.timeLimit(.minutes(10)))
struct MisuseTests {
  /// The mistakes of a call that names its own place.
  private static let here = "OperationsTests/MisuseTests.swift:"

  private static let numbers = [
    Mistake("a limit below 0", says: "“g” cannot run -2 members at once", "from 0", "defaultMaxConcurrent") {
      GroupOperation([]).named("g").maxConcurrentOperationCount = -2
    },
    Mistake("no attempt", says: "cannot try 0 times", "1 attempt or more", here) {
      _ = RetryOperation(attempts: 0) { _ in x() }
    },
    Mistake("a capacity of 0", says: "a capacity of 0", "at least 1", here) {
      _ = EventCapacity(0, whenFull: .suspend)
    },
    Mistake("a key for 0 operations", says: "“x” cannot be limited to 0 operations under the key “k”", "1 or more") {
      x().limited("k", to: 0)
    },
    Mistake("a weight of 0", says: "“x” cannot weigh 0 under the key “k”", "1 or more") {
      x().limited("k", to: 2, weight: 0)
    },
    Mistake("a weight above the limit", says: "“x” weighs 3 under the key “k”, which admits 2", "up to the limit") {
      x().limited("k", to: 2, weight: 3)
    },
    Mistake("a weight above another limit", says: "“x” weighs 3 under the key “k”, which admits 1", "up to the limit") {
      x().limited("k", to: 4, weight: 3).exclusive("k")
    },
    Mistake("a throttle of 0 starts", says: "“x” cannot be throttled to 0 starts under the key “k”", "1 or more") {
      x().throttled("k", to: 0, per: .seconds(1))
    },
    Mistake("a start without a weight", says: "“x” cannot weigh 0 under the key “k”", "1 or more") {
      x().throttled("k", to: 2, per: .seconds(1), weight: 0)
    },
    Mistake("a start above the count", says: "“x” weighs 3 under the key “k”, which admits 2", "up to the limit") {
      x().throttled("k", to: 2, per: .seconds(1), weight: 3)
    },
    Mistake("a key for -1 operations", says: "The key “k” cannot be limited to -1 operations", "0 or more, or nil") {
      ExclusivityDomain().setLimit(-1, for: "k")
    },
    Mistake("a throttle of no time", says: "under the key “k” per 0 seconds", "longer than zero") {
      x().throttled("k", to: 1, per: .zero)
    },
    Mistake("the pause after attempt 0", says: "no pause after attempt 0", "the first attempt is 1", here) {
      _ = backoff().delay(after: 0)
    },
    Mistake("a constant backoff below 0", says: "A backoff cannot wait -1 seconds", "zero up", here) {
      _ = Backoff.constant(.seconds(-1))
    },
    Mistake("a backoff that begins below 0", says: "A backoff waits from zero up", here) {
      _ = backoff(from: .shortest)
    },
    Mistake("a backoff that ends below 0", says: "A backoff waits from zero up") { _ = backoff(to: .seconds(-1)) },
    Mistake("a multiplier of 0", says: "multiplier is more than zero, not 0.0", here) { _ = backoff(times: 0) },
    Mistake("a multiplier that is no number", says: "more than zero, not nan") { _ = backoff(times: .nan) },
    Mistake("an infinite multiplier", says: "multiplier is more than zero", "inf") { _ = backoff(times: .infinity) },
    Mistake("a jitter above 1", says: "jitter is a part", "from 0 to 1, not 1.5", here) { _ = backoff(jitter: 1.5) },
    Mistake("a jitter below 0", says: "from 0 to 1, not -0.5") { _ = backoff(jitter: -0.5) },
    Mistake("a jitter that is no number", says: "from 0 to 1, not nan") { _ = backoff(jitter: .nan) },
    Mistake("a watchdog with no limit", says: "cannot have a limit of 0 seconds", "greater than zero", here) {
      _ = SchedulerWatchdog(limit: .zero) { _ in }
    },
    Mistake("a clock moved back", says: "A clock cannot go back, by -1 seconds") {
      ManualClock().advance(by: .seconds(-1))
    },
    Mistake("a clock moved to a time that has passed", says: "A clock cannot go back") {
      ManualClock().advance(to: .init(offset: .nanoseconds(-1)))
    },
    Mistake("a clock moved back with its schedulers", says: "A clock cannot go back, by -1 seconds") {
      let clock = ManualClock()
      await clock.advance(by: .seconds(-1), draining: SerialScheduler(name: "s", clock: clock))
    },
  ]

  private static let itself = "“x” cannot wait for itself"

  private static let dependencies = [
    Mistake("x ==> x", says: itself, "another", with: x()) { $0 ==> $0 },
    Mistake("a plain x ==> x", says: itself, with: plain()) { $0 ==> $0 },
    Mistake("x.addDependency(x)", says: itself, with: x()) { $0.addDependency($0) },
    Mistake("writing to itself", says: itself, with: x()) { $0.pass(to: $0) { _, _ in } },
    Mistake("an adapter from x to x", says: itself, "another operation", with: x()) {
      _ = AdapterOperation(from: $0, to: $0) { _, _ in }
    },
    Mistake("a flatMap that returns itself", says: itself, with: Journal<ResultOperation<Int>>()) { journal in
      journal.write(x().flatMap { _ in journal.entries[0] }.named("x"))
      _ = try await OperationQueue().run(journal.entries[0])
    },
    Mistake("a dependency of a started one", says: "“x” has been started and can no longer wait for “y”", "before") {
      started().waits(for: AsyncOperation().named("y"))
    },
    Mistake("a dependency in a condition", says: "“x” has been started and can no longer wait for", with: x()) { x in
      x.addCondition("c") { $0.waits(for: AsyncOperation()) }
      _ = try await OperationQueue().run(x)
    },
  ]

  private static let members = [
    Mistake("a group in itself", says: "“g” cannot be a member of itself", "another group", with: GroupOperation("g")) {
      $0.addOperation($0)
    },
    Mistake("a trace inside itself", says: "“x” cannot be traced inside “x”", "operation that runs the other") {
      let x = x()
      OperationTracer().trace(x, inside: x)
    },
    Mistake("a trace inside an operation that is inside it", says: "“x” cannot be traced inside “g”", "runs inside it")
    {
      let (x, group, tracer) = (x(), GroupOperation("g"), OperationTracer())
      tracer.trace(group, inside: x)
      tracer.trace(x, inside: group)
    },
    Mistake("a group in one that is in one that is in it", says: "“a” cannot be a member of itself") {
      let groups = ["a", "b", "c"].map { GroupOperation([]).named($0) }
      groups[0].addOperation(groups[1])
      groups[1].addOperation(groups[2])
      groups[2].addOperation(groups[0])
    },
    Mistake("a member of the same group", says: "“x” is in this group already", "make a new one", with: x()) {
      GroupOperation([]).addOperations([$0, $0])
    },
    Mistake("a plain member of the same group", says: "“x” is in this group already", with: plain()) {
      GroupOperation([$0]).addOperation($0)
    },
    Mistake("a member of another group", says: "“x” is in a group already (“g”)", "make a new one") {
      inGroup { GroupOperation([]).addOperation($0) }
    },
    Mistake("a member of another group, in the builder", says: "“x” is in a group already", "make a new one") {
      inGroup { x in _ = GroupOperation { x } }
    },
    Mistake("a member that is in a queue", says: "“x” is in a queue already", "make a new one", with: x()) {
      OperationQueue.suspended().addOperation($0)
      GroupOperation([]).addOperation($0)
    },
    Mistake("a member that executes", says: "“x” has been started already", "make a new one") {
      GroupOperation([]).addOperation(started())
    },
    Mistake("a plain member that has finished", says: "“x” has been started already", with: plain()) {
      $0.start()
      GroupOperation([]).addOperation($0)
    },
    Mistake("a member below 0", says: "“g” cannot have fewer than 0 unfinished", "Add an operation below 1 or more") {
      await GroupOperation([]).named("g").addOperation(x(), whenBelow: 0)
    },
    Mistake("room below 0", says: "“g” cannot have fewer than 0 unfinished members", "Wait for room below 1 or more") {
      await GroupOperation([]).named("g").waitForRoom(below: 0)
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
    Mistake("again, by its own observer", says: "“x” has been started already", "make a new one", with: x()) { x in
      let queue = OperationQueue()
      x.addObserver(didFinish: { queue.addOperation($0) })
      try await queue.run(x as AsyncOperation)
    },
    Mistake("a plain one twice in a queue", says: "“x” is in this call already", "make a new one", with: plain()) {
      OperationQueue().addOperations([$0, AsyncOperation(), $0])
    },
    Mistake("a plain finished one in a queue", says: "“x” has been started already and cannot be", with: plain()) {
      $0.start()
      OperationQueue().addOperations([$0])
    },
    Mistake("the same operation for each attempt", says: "“x” has been started already", "make a new one") {
      let attempt = ResultOperation<Int> { throw TestError("again") }.named("x")
      _ = try await OperationQueue().run(RetryOperation(attempts: 2) { _ in attempt })
    },
    Mistake("sharing another type under one key", says: "“k” is shared by runs of another type", "another key") {
      let domain = ExclusivityDomain()
      try await OperationQueue().run(sharing: "k", in: domain) {
        TaskOperation { _ = try await OperationQueue().run(sharing: "k", in: domain) { ResultOperation { "text" } } }
      }
    },
    Mistake("a key for a member", says: "cannot be given the key “k”", "before") { inGroup { $0.exclusive("k") } },
    Mistake("a key for a started one", says: "cannot be given the key “k”") { started().exclusive("k") },
    Mistake("a flow for a member", says: "“x” has been added", "Set the flow before") { inGroup { $0.flow = "f" } },
    Mistake("start() of one that waits", says: "“x” is not ready: it waits for “y”", "Add it to a queue", with: x()) {
      AsyncOperation().named("y") ==> $0
      $0.start()
    },
    Mistake("start() of one that waits for keys", says: "it waits for the keys “k”, “l”. Leave it to", with: x()) { x in
      await OperationQueue().begin(HeldOperation().exclusive("k"))
      OperationQueue().addOperation(x.exclusive("k", "l"))
      x.start()
    },
    Mistake("start() of a member", says: "“x” is a member of a group, which starts it") { inGroup { $0.start() } },
    Mistake("start(), twice", says: "“x” has been started before", "make a new one") { started().start() },
    Mistake("a left-over notification", says: "“x” cannot finish because a key-value", "Remove", "from Migrated") {
      try await OperationQueue().run(Migrated().named("x"))
    },
    Mistake("a condition of a started one", says: "“x” has been started", "too late for its condition “c”", "before") {
      started().addCondition("c") { _ in }
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

  private static let tasks = [
    Mistake("a claim of 0", says: "A claim cannot be limited to 0 operations under the key “k”", "1 or more") {
      try await withKeys(.limited("k", to: 0)) {}
    },
    Mistake("the weight of two claims", says: "“x” weighs 3 under the key “k”, which admits 1", "up to the limit") {
      try await withKeys(.limited("k", to: 3, weight: 3), .exclusive("k"), name: "x") {}
    },
    Mistake("a loop over at most 0", says: "At most 0 operations at once would never run", "Allow 1 or more") {
      _ = OperationQueue().results(of: [1], atMost: 0) { _ in ResultOperation { 1 } }
    },
    Mistake("results, twice", says: "can be iterated once", "Keep them in an array") {
      let results = OperationQueue().results(of: [ResultOperation { 1 }])
      for await _ in results {}
      for await _ in results {}
    },
    Mistake("results of plain operations", says: "An operation without a value has no result", "Run it in the closure")
    {
      _ = OperationQueue().results(of: [1], atMost: 1) { _ in BlockOperation {} }
    },
    Mistake("a retry of a plain one", says: "does not run a plain operation", "an AsyncOperation in a closure", here) {
      _ = RetryOperation(attempts: 2) { _ in BlockOperation {} }
    },
  ]

  private static let schedulers = [
    Mistake("a scheduler of two", says: "The queue of the scheduler “s” runs one operation at a time", "another") {
      s().queue.maxConcurrentOperationCount = 2
    },
    Mistake("another Dispatch queue", says: "“s” depends on its own dispatch queue", "another queue") {
      unsafe s().queue.underlyingQueue = .global()
    },
    Mistake("waiting within for all", says: "“s” cannot wait for its own queue", "another thread", with: s()) { s in
      try await s.run { s.queue.waitUntilAllOperationsAreFinished() }
    },
    Mistake("waiting within for one", says: "“s” cannot wait for operations", "Pass false", with: s()) { s in
      try await s.run { s.queue.addOperations([Operation()], waitUntilFinished: true) }
    },
    Mistake("main suspended", says: "The main scheduler cannot be suspended", "of your own") {
      SerialScheduler.main.isSuspended = true
    },
    Mistake("main shut down", says: "The main scheduler cannot be shut down", "of your own") {
      SerialScheduler.main.shutDown()
    },
  ]

  private static let names = [
    Mistake("a name with a NUL", says: "“a\u{2400}b” cannot count -1 in a progress", "from 0 up") { weigh("a\0b") },
    Mistake("a name with everything", says: "“\"“”\\%s%n\u{202E}😀” cannot count -1") { weigh("\"“”\\%s%n\u{202E}😀") },
    Mistake("a name of a megabyte", says: "xxx” cannot count -1") { weigh(String(repeating: "x", count: 1 << 20)) },
  ]

  private static let all = numbers + dependencies + members + starts + tasks + schedulers + violations + names

  @Test(arguments: all.map(\.name)) func aMistake(_ name: String) async throws {
    let mistake = try #require(Self.all.first { $0.name == name })
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [name] in
      try await Self.all.first { $0.name == name }?.body()
    }
    let printed = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    for part in mistake.sentence + ["Fatal error: "] { #expect(printed.contains(part), "\(printed)") }
  }
}
#endif
