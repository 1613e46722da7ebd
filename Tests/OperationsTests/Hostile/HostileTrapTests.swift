#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Foundation
import Operations
import OperationsTestSupport
import Testing

/// A mistake, and what the sentence that ends the program must contain.
private struct HostileTrap: Sendable {
  let name: String
  let sentence: [String]
  let body: @Sendable () async throws -> Void

  init(_ name: String, says sentence: String..., body: @escaping @Sendable () async throws -> Void) {
    (self.name, self.sentence, self.body) = (name, sentence, body)
  }
}

private func x() -> ResultOperation<Int> { ResultOperation { 1 }.named("x") }

/// Puts `body` into a callback of an operation that runs.
private func inExecution(_ body: @escaping @Sendable (AsyncOperation) -> Void) async {
  let operation = AsyncBlockOperation { operation in
    body(operation)
    operation.finish()
  }
  OperationQueue().addOperation(operation.named("x"))
  await operation.finished()
}

/// Mistakes of a programmer's: each ends the program with a sentence that names what it is about, and says what to do.
@Suite(.timeLimit(.minutes(10)))
struct HostileTrapTests {
  private static let numbers = [
    HostileTrap(
      "a limit of Int.min",
      says: "“g” cannot run -9223372036854775808 members at once",
      "Set a number from 0"
    ) {
      GroupOperation([]).named("g").maxConcurrentOperationCount = .min
    },
    HostileTrap("attempts of Int.min", says: "cannot try -9223372036854775808 times", "1 attempt or more") {
      _ = RetryOperation(attempts: .min) { _ in x() }
    },
    HostileTrap("room for no event", says: "a capacity of 0", "at least 1") {
      _ = EventCapacity(0, whenFull: .suspend)
    },
    HostileTrap("room for less than no event", says: "a capacity of -1", "at least 1") {
      _ = EventCapacity(-1, whenFull: .fail)
    },
    HostileTrap("a weight of Int.min", says: "“x” cannot count -9223372036854775808", "from 0 up") {
      x().progressWeight = .min
    },
    HostileTrap("the pause after attempt 0", says: "no pause after attempt 0", "the first attempt is 1") {
      _ = Backoff.exponential(initial: .seconds(1), cap: .seconds(1)).delay(after: 0)
    },
    HostileTrap("the pause after attempt Int.min", says: "no pause after attempt -9223372036854775808") {
      _ = Backoff.exponential(initial: .seconds(1), cap: .seconds(1)).delay(after: .min)
    },
    HostileTrap("the shortest constant backoff", says: "A backoff cannot wait -", "zero up") {
      _ = Backoff.constant(.shortest)
    },
    HostileTrap("a backoff that begins below zero", says: "A backoff waits from zero up") {
      _ = Backoff.exponential(initial: .shortest, cap: .seconds(1))
    },
    HostileTrap("a multiplier of 0", says: "multiplier is more than zero, not 0.0") {
      _ = Backoff.exponential(initial: .seconds(1), multiplier: 0, cap: .seconds(1))
    },
    HostileTrap("a negative multiplier", says: "multiplier is more than zero, not -2.0") {
      _ = Backoff.exponential(initial: .seconds(1), multiplier: -2, cap: .seconds(1))
    },
    HostileTrap("an infinite multiplier", says: "multiplier is more than zero", "inf") {
      _ = Backoff.exponential(initial: .seconds(1), multiplier: .infinity, cap: .seconds(1))
    },
    HostileTrap("a jitter that is no number", says: "from 0 to 1, not nan") {
      _ = Backoff.exponential(initial: .seconds(1), cap: .seconds(1), jitter: .nan)
    },
    HostileTrap("a negative jitter", says: "from 0 to 1, not -0.5") {
      _ = Backoff.exponential(initial: .seconds(1), cap: .seconds(1), jitter: -0.5)
    },
    HostileTrap("a watchdog with no patience", says: "cannot have a limit of 0.0 seconds", "greater than zero") {
      _ = SchedulerWatchdog(limit: .zero) { _ in }
    },
    HostileTrap("a watchdog before its time", says: "cannot have a limit of -", "greater than zero") {
      _ = SchedulerWatchdog(limit: .shortest) { _ in }
    },
    HostileTrap("a clock moved back", says: "A clock cannot go back") { ManualClock().advance(by: .shortest) },
    HostileTrap("a clock moved to a time that has passed", says: "A clock cannot go back") {
      ManualClock().advance(to: .init(offset: .nanoseconds(-1)))
    },
    HostileTrap("a clock moved back, with its schedulers", says: "A clock cannot go back, by -1.0 seconds") {
      let clock = ManualClock()
      await clock.advance(by: .seconds(-1), draining: SerialScheduler(name: "s", clock: clock))
    },
    HostileTrap("nothing as an aggregate", says: "An AggregateError needs a failure") { _ = AggregateError([]) },
  ]

  private static let graphs = [
    HostileTrap("x ==> x", says: "“x” cannot wait for itself") {
      let x = x()
      x ==> x
    },
    HostileTrap("x ==> [x]", says: "“x” cannot wait for itself") {
      let x = x()
      x ==> [x]
    },
    HostileTrap("[x] ==> x", says: "“x” cannot wait for itself") {
      let x = x()
      [x] ==> x
    },
    HostileTrap("x waits for x", says: "“x” cannot wait for itself") {
      let x = x()
      x.waits(for: x)
    },
    HostileTrap("addDependency", says: "“x” cannot wait for itself") {
      let x = x()
      x.addDependency(x)
    },
    HostileTrap("a group that waits for itself", says: "“g” cannot wait for itself") {
      let group = GroupOperation("g") { AsyncOperation() }
      group.addDependency(group)
    },
    HostileTrap("passing to itself", says: "“x” cannot wait for itself") {
      let x = TransformOperation { (value: Int) in value }.named("x")
      x.pass(to: x)
    },
    HostileTrap("writing to itself", says: "“x” cannot wait for itself") {
      let x = x()
      x.pass(to: x) { _, _ in }
    },
    HostileTrap("an adapter from x to x", says: "“x” cannot wait for itself", "another operation") {
      let x = x()
      _ = AdapterOperation(from: x, to: x) { _, _ in }
    },
    HostileTrap("an adapter between a plain operation and itself", says: "“x” cannot wait for itself") {
      let x = BlockOperation {}.named("x")
      _ = AdapterOperation(from: x, to: x) { _, _ in }
    },
    HostileTrap("a flatMap that returns itself", says: "“f” cannot wait for itself") {
      let itself = Journal<ResultOperation<Int>>()
      itself.write(x().flatMap { _ in itself.entries[0] }.named("f"))
      _ = try await OperationQueue().run(graphEndingIn: itself.entries[0])
    },
    HostileTrap("an attempt that is the whole", says: "“r” has been started already", "make a new one") {
      let itself = Journal<ResultOperation<Int>>()
      itself.write(RetryOperation(attempts: 2) { _ in itself.entries[0] }.named("r"))
      _ = try await OperationQueue().run(itself.entries[0])
    },
    HostileTrap("an attempt that is in a queue", says: "“x” is in a queue already", "make a new one") {
      let x = x()
      OperationQueue.suspended().addOperation(x)
      _ = try await OperationQueue().run(RetryOperation(attempts: 2) { _ in x })
    },
    HostileTrap("sharing what has run", says: "“x” has been started already", "make a new one") {
      let x = x()
      _ = try await OperationQueue().run(x)
      _ = try await OperationQueue().run(sharing: "k", in: ExclusivityDomain()) { x }
    },
    HostileTrap("sharing another type under one key", says: "“k” is shared by runs of another type", "another key") {
      let domain = ExclusivityDomain()
      _ = try await OperationQueue().run(sharing: "k", in: domain) {
        TaskOperation {
          _ = try await OperationQueue().run(sharing: "k", in: domain) { ResultOperation { "text" } }
          return 1
        }
      }
    },
    HostileTrap("a group in itself", says: "“g” cannot be a member of itself", "another group") {
      let group = GroupOperation([]).named("g")
      group.addOperation(group)
    },
    HostileTrap("a group in itself, as the end of a graph", says: "“g” cannot be a member of itself") {
      let group = GroupOperation([]).named("g")
      group.addGraph(endingIn: group)
    },
    HostileTrap("a group in one that is in one that is in it", says: "“a” cannot be a member of itself") {
      let groups = ["a", "b", "c"].map { GroupOperation([]).named($0) }
      groups[0].addOperation(groups[1])
      groups[1].addOperation(groups[2])
      groups[2].addOperation(groups[0])
    },
    HostileTrap("a running group in one that is in it", says: "“a” has been started already") {
      let (outer, inner) = (GroupOperation([]).named("a"), GroupOperation([]).named("b"))
      outer.addOperation(inner)
      inner.addOperation(AsyncBlockOperation { _ in inner.addOperation(outer) })
      OperationQueue().addOperation(outer)
      await outer.finished()
    },
    HostileTrap("the same one twice in a group", says: "“x” is in this group already") {
      let x = x()
      GroupOperation([]).addOperations([x, x])
    },
    HostileTrap("the same one in two groups", says: "“x” is in a group already") {
      let x = x()
      let group = GroupOperation([x])
      withExtendedLifetime(group) { _ = GroupOperation([x]) }
    },
    HostileTrap("the same one twice in a queue", says: "“x” is in a queue already") {
      let x = x()
      OperationQueue.suspended().addOperations([x, x])
    },
    HostileTrap("a key for a member", says: "cannot be given the key “k”") {
      let x = x()
      let group = GroupOperation([x])
      withExtendedLifetime(group) { _ = x.exclusive("k") }
    },
    HostileTrap("a key for a finished one", says: "cannot be given the key “k”") {
      let x = x()
      _ = try await OperationQueue().run(x)
      OperationQueue().addOperation(x.exclusive("k"))
    },
    HostileTrap("running what is in a queue", says: "“x” is in a queue already") {
      let x = x()
      OperationQueue.suspended().addOperation(x)
      _ = try await OperationQueue().run(x)
    },
  ]

  private static let moments = [
    HostileTrap("a dependency in execute()", says: "“x” has been started and can no longer wait for") {
      await inExecution { $0.waits(for: AsyncOperation()) }
    },
    HostileTrap("a condition in execute()", says: "“x” has been started", "too late for its condition “c”") {
      await inExecution { $0.addCondition(OperationCondition(name: "c") { _ in }) }
    },
    HostileTrap("start() in execute()", says: "“x” has been started before", "make a new one") {
      await inExecution { $0.start() }
    },
    HostileTrap("a dependency in a condition", says: "“x” has been started and can no longer wait for") {
      let x = x()
      x.addCondition(OperationCondition(name: "c") { $0.waits(for: AsyncOperation()) })
      _ = try await OperationQueue().run(x)
    },
    HostileTrap("a dependency after the end", says: "“x” has been started and can no longer wait for") {
      let x = x()
      _ = try await OperationQueue().run(x)
      AsyncOperation() ==> x
    },
    HostileTrap("start() of a member", says: "“x” is a member of a group, which starts it") {
      let x = x()
      let group = GroupOperation([x])
      withExtendedLifetime(group) { x.start() }
    },
    HostileTrap("start() of one that waits", says: "“x” is not ready: it waits for “y”", "Add it to a queue") {
      let x = x()
      AsyncOperation().named("y") ==> x
      x.start()
    },
    HostileTrap("start() of one that waits for a key", says: "“x” is not ready: it waits for the key “k”", "Leave it") {
      let (holder, x) = (AsyncBlockOperation { _ in }, x())
      OperationQueue().addOperation(holder.exclusive("k"))
      OperationQueue().addOperation(x.exclusive("k"))
      x.start()
    },
    HostileTrap("a member for a group that has finished", says: "“g” has finished and takes no more members") {
      let group = GroupOperation("g") { AsyncOperation() }
      try await OperationQueue().run(group)
      group.addOperations([x()])
    },
    HostileTrap("a weight for a member", says: "“x” is in a group, which has taken its weight") {
      let x = x()
      let group = GroupOperation([x])
      withExtendedLifetime(group) { x.progressWeight = 2 }
    },
  ]

  private static let schedulers = [
    HostileTrap(
      "a scheduler of two",
      says: "The queue of the scheduler “s” runs one operation at a time",
      "another queue"
    ) {
      SerialScheduler(name: "s").queue.maxConcurrentOperationCount = 2
    },
    HostileTrap("a scheduler of none", says: "cannot be 0. Use another queue") {
      SerialScheduler(name: "s").queue.maxConcurrentOperationCount = 0
    },
    HostileTrap("a scheduler of as many as you like", says: "cannot be -1. Use another queue") {
      SerialScheduler(name: "s").queue.maxConcurrentOperationCount = OperationQueue.defaultMaxConcurrentOperationCount
    },
    HostileTrap("another Dispatch queue", says: "“s” depends on its own dispatch queue", "another queue") {
      unsafe SerialScheduler(name: "s").queue.underlyingQueue = .global()
    },
    HostileTrap("waiting from within until all is done", says: "“s” cannot wait for its own queue", "another thread") {
      let scheduler = SerialScheduler(name: "s")
      try await scheduler.run { scheduler.queue.waitUntilAllOperationsAreFinished() }
    },
    HostileTrap("waiting from within for an operation", says: "“s” cannot wait for operations", "Pass false") {
      let scheduler = SerialScheduler(name: "s")
      try await scheduler.run { scheduler.queue.addOperations([Operation()], waitUntilFinished: true) }
    },
    HostileTrap("main suspended", says: "The main scheduler cannot be suspended", "of your own") {
      SerialScheduler.main.isSuspended = true
    },
    HostileTrap("main shut down", says: "The main scheduler cannot be shut down", "of your own") {
      SerialScheduler.main.shutDown(.discard)
    },
    HostileTrap("an object off its scheduler", says: "belongs to the scheduler “s”", "Schedule an event") {
      _ = SchedulableObject((1, 2), on: SerialScheduler(name: "s")).object
    },
    HostileTrap("a confined property off its scheduler", says: "belongs to the scheduler “s”", "Schedule an event") {
      Shelf(on: SerialScheduler(name: "s")).items.append(1)
    },
  ]

  private static let names = [
    HostileTrap("a name with a NUL", says: "“a\u{2400}b” cannot count -1", "from 0 up") {
      AsyncOperation().named("a\0b").progressWeight = -1
    },
    HostileTrap("a message with a NUL", says: "a\u{2400}b belongs to the scheduler “s\u{2400}”", "Schedule an event") {
      SerialScheduler(name: "s\0").preconditionIsCurrent("a\0b")
    },
    HostileTrap("a name of nothing", says: "“AsyncOperation” cannot count -1") {
      AsyncOperation().named("").progressWeight = -1
    },
    HostileTrap("a name with everything", says: "“\"“”\\%s%n\u{202E}😀” cannot count -1") {
      AsyncOperation().named("\"“”\\%s%n\u{202E}😀").progressWeight = -1
    },
    HostileTrap("a name of a megabyte", says: "xxx” cannot count -1", "from 0 up") {
      AsyncOperation().named(String(repeating: "x", count: 1 << 20)).progressWeight = -1
    },
  ]

  private static let all = numbers + graphs + moments + schedulers + names

  @Test(arguments: all.map(\.name)) func aMistake(_ name: String) async throws {
    let trap = try #require(Self.all.first { $0.name == name })
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [name] in
      try await Self.all.first { $0.name == name }?.body()
    }
    for part in trap.sentence { expectSentence(part, in: result) }
    expectSentence("Fatal error: ", in: result)
  }
}
#endif
