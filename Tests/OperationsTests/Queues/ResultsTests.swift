import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ResultsTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  /// A sequence that writes an entry for each element that is read.
  private func elements(_ count: Int) -> some Sequence<Int> {
    (0..<count).lazy.map { [journal] element in
      journal.write("read \(element)")
      return element
    }
  }

  @Test func resultsComeInTheOrderOfFinishing() async {
    let gates = (0..<3).map { _ in Gate() }
    gates[2].open()
    var order: [Int] = []
    let results = queue.results(of: 0..<3, atMost: 3) { index in
      await gates[index].opened()
      if index == 1 { throw TestError("1") }
      return index * 10
    }
    for await (index, result) in results {
      order.append(index)
      switch result {
      case .success(let value): #expect(value == index * 10 && index != 1)
      case .failure(let error): #expect(index == 1 && error as? TestError == TestError("1"))
      }
      if index > 0 { gates[index - 1].open() }
    }
    #expect(order == [2, 1, 0])
  }

  @Test func whatIsNotReadCountsAmongThoseAtOnce() async {
    var count = 0
    for await (index, _) in queue.results(of: elements(10), atMost: 3, { index in ResultOperation { index } }) {
      count += 1
      #expect(journal.count == min(count + 3, 10), "\(index)")
      await queue.finished()
      #expect(journal.count == min(count + 3, 10), "a slow loop slows the work down")
    }
    #expect(count == 10)
  }

  @MainActor @Test func theElementsAndTheLoopMayBelongToAnActor() async {
    final class Page {
      let number: Int
      init(_ number: Int) { self.number = number }
    }
    var sum = 0
    let results = queue.results(of: (0..<20).map { Page($0) }, atMost: 2) { page in
      let number = page.number
      return ResultOperation { number }
    }
    for await (page, result) in results {
      MainActor.preconditionIsolated()
      if case .success(page.number) = result { sum += page.number }
    }
    #expect(sum == 190)
  }

  @Test func aLoopThatNeverBegins_cancelsItsOperations() async throws {
    let operations = (0..<3).map { _ in ResultOperation { journal.write("never") } }
    try await cancelledTask { for await _ in queue.results(of: Array(operations[..<2])) { journal.write("never") } }
      .value
    _ = queue.results(of: Array(operations[2...]))
    for operation in operations { await operation.finished() }
    #expect(operations.allSatisfy(\.isCancelled) && journal.entries.isEmpty)
  }

  @Test func manyElements_needTheMemoryOfAFew() async {
    let live = LiveCount()
    var largest = 0
    let count = isThorough ? 100_000 : 8_000
    let results = queue.results(of: 0..<count, atMost: 6) { _ in ResultOperation(live.counted()) }
    for await _ in results { largest = max(largest, live.alive) }
    // A thread of the queue may still release an operation whose result was read.
    #expect(largest < 100)
    await live.none()
  }

  @Test func racesOfALoopAndItsCancellation_leaveNothingBehind() async {
    let live = LiveCount()
    for round in 0..<(isThorough ? 100_000 : 1_000) {
      let task = Task {
        let results = queue.results(of: 0..<3, atMost: 2) { _ in ResultOperation(live.counted()) }
        for await (index, _) in results where index == round % 4 { break }
      }
      if round.isMultiple(of: 2) { task.cancel() }
      await task.value
    }
    await queue.finished()
    await live.none()
  }

  // MARK: Ordered results

  @Test func orderedResults_areInTheOrderOfTheElements() async {
    let gate = Gate()
    let operations = (0..<3).map { index in TaskOperation { if index == 0 { await gate.opened() } } }
    operations[2].addObserver(didFinish: { _ in gate.open() })
    var order: [Int] = []
    for await (operation, _) in queue.results(of: operations, ordered: true) {
      order.append(operations.firstIndex { $0 === operation } ?? -1)
    }
    #expect(order == [0, 1, 2])
  }

  @Test func aResultThatWaitsForAnEarlierOne_countsAmongThoseAtOnce() async {
    let (first, third) = (Gate(), Gate())
    let task = Task {
      var order: [Int] = []
      let results = queue.results(of: elements(5), atMost: 3, ordered: true) { index in
        if index == 2 { third.open() }
        if index == 0 { await first.opened() }
      }
      for await (index, _) in results { order.append(index) }
      return order
    }
    await third.opened()
    await poll { queue.operations.count == 1 }
    #expect(journal.count == 3)
    first.open()
    #expect(await task.value == [0, 1, 2, 3, 4] && journal.count == 5)
  }

  // MARK: Asynchronous sequences

  /// An asynchronous sequence that records which elements were read, and may fail at its end. Not sendable.
  private final class Feed: AsyncSequence, AsyncIteratorProtocol {
    let (count, error, journal): (Int, TestError?, Journal<String>)
    let willReturn: (Int) async -> Void
    private var next = 0

    init(
      _ count: Int,
      failing error: TestError? = nil,
      _ journal: Journal<String>,
      willReturn: @escaping (Int) async -> Void = { _ in }
    ) {
      (self.count, self.error, self.journal, self.willReturn) = (count, error, journal, willReturn)
    }

    func makeAsyncIterator() -> Feed { self }

    func next() async throws -> Int? {
      if next == count, let error { throw error }
      if next == count { return nil }
      journal.write("read \(next)")
      await willReturn(next)
      next += 1
      return next - 1
    }
  }

  @Test(arguments: [true, false]) func anAsynchronousSequence_isReadAsThereIsRoom(isOrdered: Bool) async throws {
    var (count, next) = (0, 0)
    for try await (index, result) in queue.results(of: Feed(20, journal), atMost: 3, ordered: isOrdered, { $0 * 10 }) {
      #expect((try? result.get()) == index * 10 && (!isOrdered || index == next))
      (count, next) = (count + 1, index + 1)
      await journal.reaches(min(count + 3, 20))
      await queue.finished()
      #expect(journal.count == min(count + 3, 20))
    }
    #expect(count == 20)
  }

  @Test func anErrorOfTheSequence_comesAfterTheResultsBeforeIt() async {
    var read: [Int] = []
    await #expect(throws: TestError("cut off")) {
      let feed = Feed(3, failing: TestError("cut off"), journal)
      for try await (index, _) in queue.results(of: feed, atMost: 9, ordered: true, { _ in throw TestError("own") }) {
        read.append(index)
      }
    }
    #expect(read == [0, 1, 2])
  }

  @Test(arguments: [true, false]) func leavingALoopOverAStream_cancelsTheReaderAndTheRest(byTask: Bool) async {
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    let (begun, ended) = (Gate(), Gate())
    source.onTermination = { _ in ended.open() }
    for element in 0..<2 { source.yield(element) }
    let task = Task {
      let results = queue.results(of: stream, atMost: 3) { index in
        if index == 0 { return }
        begun.open()
        try? await Task.sleep(for: .seconds(3600))
        journal.write("cancelled")
      }
      // The sequence cannot fail, so that the loop needs no `try`.
      for await _ in results where !byTask {
        await begun.opened()
        break
      }
    }
    await begun.opened()
    if byTask { task.cancel() }
    await task.value
    await ended.opened()
    await journal.reaches(1)
    await queue.finished()
  }

  @Test func aStreamWithoutALimit_deliversResultsBeforeItsEnd() async {
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    source.yield(1)
    for await (element, _) in queue.results(of: stream, atMost: .max, { $0 }) {
      if element == 3 { break }
      source.yield(element + 1)
    }
  }

  /// The sequence ignores the cancellation of its reader.
  @Test func afterLeavingTheLoop_noFurtherElementIsRead() async throws {
    let (reading, gate, live) = (Gate(), Gate(), LiveCount())
    do {
      let token = LiveCount.Token(live)
      let elements = Feed(50, journal) { element in
        guard element == 1 else { return withExtendedLifetime(token) {} }
        reading.open()
        await Task.detached { await gate.opened() }.value
      }
      for try await _ in queue.results(of: elements, atMost: 20, { $0 }) {
        await reading.opened()
        break
      }
    }
    gate.open()
    await live.none()
    #expect(journal.entries == ["read 0", "read 1"])
  }

  @Test func racesOfAStreamAndItsCancellation_leaveNothingBehind() async {
    let live = LiveCount()
    for round in 0..<(isThorough ? 50_000 : 500) {
      let task = Task {
        let (stream, source) = AsyncStream.makeStream(of: LiveCount.Token.self)
        for _ in 0..<3 { source.yield(LiveCount.Token(live)) }
        if round.isMultiple(of: 4) { source.finish() }
        var count = 0
        for await _ in queue.results(of: stream, atMost: 2, ordered: round.isMultiple(of: 3), { _ in }) {
          count += 1
          if count == round % 4 { break }
        }
      }
      if round.isMultiple(of: 2) || round % 4 == 3 { task.cancel() }
      await task.value
    }
    await queue.finished()
    await live.none()
  }

  // MARK: The first of several

  @Test func nothingIsRetained_afterTheFirstSuccess() async throws {
    let live = LiveCount()
    for index in 0..<3 {
      let operations = (0..<3).map { number in
        let token = LiveCount.Token(live)
        return ResultOperation { () throws -> Int in
          if number < index { throw TestError("down") }
          return withExtendedLifetime(token) { number }
        }
      }
      let delay = index == 1 ? nil : Duration.seconds(3600)
      #expect(try await queue.first(of: operations, staggered: delay) >= index)
    }
    await live.none()
  }

  @Test func allFailures_areInTheOrderOfTheOperations() async {
    let gate = Gate()
    let first = TaskOperation<Int> {
      await gate.opened()
      throw TestError("1")
    }
    let second = ResultOperation<Int> { throw TestError("2") }
    second.addObserver(didFinish: { _ in gate.open() })
    let error = await #expect(throws: AggregateError.self) {
      try await queue.first(of: [first.named("a"), second.named("b")])
    }
    #expect(error?.failures.map(\.path) == [["a"], ["b"]])
  }

  @Test func theFirstOfNone_isAnErrorWithoutFailures_andAFailureOfTheOperationAround() async {
    let task = TaskOperation { [queue] in try await queue.first(of: [ResultOperation<Void>]()) }
    let error = await #expect(throws: AggregateError.self) { try await queue.run(task) }
    #expect(error?.failures.isEmpty == true && error?.primary.error is AggregateError)
    #expect(task.errors.count == 1 && !task.isSuccessful && error?.description == "There was no operation.")
    let cancelled = AsyncOperation()
    cancelled.cancel()
    cancelled.finish(with: AggregateError([]))
    #expect(cancelled.errors.count == 1)
  }

  @Test func staggered_theNextBeginsWhenOneFailsOrTheTimeHasPassed() async throws {
    let (clock, slow) = (ManualClock(), HeldResult())
    let failing = ResultOperation<Int> { throw TestError("down") }
    let (good, unused) = (ResultOperation { 3 }, ResultOperation { 4 })
    let operations = [slow as ResultOperation, failing, good, unused]
    for operation in operations { operation.clock = clock }
    let task = Task { try await queue.first(of: operations, staggered: .milliseconds(250)) }
    await slow.begun.opened()
    await clock.waitForSleepers()
    #expect(failing.state == .pending)
    clock.advance(by: .milliseconds(250))
    #expect(try await task.value == 3)
    #expect(failing.isFinished && slow.isCancelled && unused.isCancelled && unused.result != nil)
    slow.finish()
  }

  @Test func cancellingTheTask_cancelsAll() async {
    let operations = (0..<3).map { _ in HeldResult() }
    let task = Task { try await queue.first(of: operations) }
    await operations[2].begun.opened()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    for operation in operations {
      #expect(operation.isCancelled)
      operation.finish()
    }
  }
}
