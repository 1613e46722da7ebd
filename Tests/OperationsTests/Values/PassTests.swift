import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Values on their way from one operation to another.
@Suite(.timeLimit(.minutes(5)))
struct PassTests {
  private let queue = OperationQueue()

  private final class Sum: ResultOperation<Int>, @unchecked Sendable {
    var parts: [Int] = []
    override func execute() { finish(returning: parts.reduce(0, +)) }
  }

  private func error(of operation: AsyncOperation) -> OperationError? { operation.errors.first as? OperationError }

  @Test func aChainOfValues() async throws {
    let text = ResultOperation { "one two three" }
    let words = TransformOperation { (text: String) in text.split(separator: " ").map(String.init) }
    let count = TransformOperation { (words: [String]) in words.count }
    text.pass(to: words).pass(to: count)
    #expect(try await queue.run(graphEndingIn: count) == 3)
    #expect(words.input == "one two three")
  }

  @Test func oneProducerManyConsumers() async throws {
    let producer = ResultOperation { 2 }
    let consumers = (0..<10).map { factor in TransformOperation { (value: Int) in value * factor } }
    for consumer in consumers { producer.pass(to: consumer) }
    #expect(try await queue.run(graphEndingIn: collect(consumers)) == (0..<10).map { $0 * 2 })
  }

  @Test func manyProducersHandOverInTheOrderOfTheCallsOneAtATime() async throws {
    for _ in 0..<20 {
      let sum = Sum()
      let producers = (0..<50).map { index in ResultOperation { index } }
      for producer in producers { producer.pass(to: sum) { sum, value in sum.parts.append(value) } }
      let group = GroupOperation(producers.shuffled() + [sum])
      try await queue.run(group)
      #expect(sum.parts == Array(0..<50))
    }
  }

  @Test func theHandOverIsOnTheConsumersThreadJustBeforeItExecutes() async throws {
    final class Consumer: ResultOperation<Bool>, @unchecked Sendable {
      var thread: Thread?
      let lane: OperationQueue
      init(_ lane: OperationQueue) {
        self.lane = lane
        super.init()
      }
      override func execute() { finish(returning: thread === Thread.current && OperationQueue.current === lane) }
    }
    let lane = OperationQueue.limited(to: 1)
    let consumer = Consumer(lane)
    let producer = ResultOperation { 1 }
    let isPending = Journal<AsyncOperation.State>()
    producer.pass(to: consumer) { consumer, _ in
      consumer.thread = Thread.current
      isPending.write(consumer.state)
    }
    queue.addOperation(producer)
    #expect(try await lane.run(consumer))
    #expect(isPending.entries == [.pending])
  }

  @Test func aProducerThatHasFinishedStillPasses() async throws {
    let producer = ResultOperation { 5 }
    try await queue.run(producer)
    let consumer = TransformOperation { (value: Int) in value + 1 }
    producer.pass(to: consumer)
    #expect(try await queue.run(consumer) == 6)
  }

  @Test func aRunningGroupTakesAPipelineByItsEnd() async throws {
    let lengths = Journal<Int>()
    let group = GroupOperation()
    let shared = ResultOperation { "shared" }
    let adding = AsyncBlockOperation { operation in
      for _ in 0..<10 {
        let length = zip(shared, ResultOperation { "own" }).map { $0.0.count + $0.1.count }
        length.onFinish { if case .success(let length) = $0 { lengths.write(length) } }
        group.addGraph(endingIn: length)
      }
      operation.finish()
    }
    group.addOperation(adding)
    try await queue.run(group)
    #expect(lengths.entries == Array(repeating: 9, count: 10))
  }

  // MARK: No value

  @Test func aFailedProducerCancelsItsConsumersAllTheWayDown() async {
    let download = ResultOperation<Int> { throw TestError("no network") }.named("Download")
    let parse = TransformOperation { (value: Int) in value }.named("Parse")
    let store = TransformOperation { (value: Int) in value }.named("Store")
    download.pass(to: parse).pass(to: store)
    await #expect(throws: OperationError.self) { try await queue.run(graphEndingIn: store) }
    for operation in [parse, store] { #expect(operation.isCancelled && operation.errors.count == 1) }
    #expect(error(of: parse)?.code == .inputUnavailable)
    #expect(error(of: parse)?.description == "“Parse” has no input from “Download”, which failed: no network")
    #expect(error(of: parse)?.underlyingErrors as? [TestError] == [TestError("no network")])
    #expect(error(of: store)?.description == "“Store” has no input from “Parse”, which had none either: no network")
    #expect(error(of: store)?.underlyingErrors as? [OperationError] == [OperationError(.inputUnavailable, "")])
  }

  @Test func aCancelledProducerCancelsItsConsumers() async {
    let producer = ResultOperation { 1 }.named("producer")
    let consumer = TransformOperation { (_: Int) in Issue.record("executed") }.named("consumer")
    producer.pass(to: consumer)
    producer.cancel()
    await #expect(throws: OperationError.self) { try await queue.run(graphEndingIn: consumer) }
    #expect(error(of: consumer)?.description == "“consumer” has no input from “producer”, which was cancelled.")
    #expect(error(of: consumer)?.underlyingErrors.first is CancellationError)
  }

  @Test func anEmptyHandedProducerCancelsItsConsumers() async {
    final class EmptyHanded: ResultOperation<Int>, @unchecked Sendable {}
    let producer = EmptyHanded().named("empty-handed")
    let consumer = TransformOperation { (_: Int) in Issue.record("executed") }
    producer.pass(to: consumer)
    await #expect(throws: OperationError.self) { try await queue.run(graphEndingIn: consumer) }
    #expect(error(of: consumer)?.code == .inputUnavailable)
    #expect((error(of: consumer)?.underlyingErrors.first as? OperationError)?.code == .outputMissing)
    #expect(error(of: consumer)?.message.contains("“empty-handed”") == true)
  }

  @Test func everyMissingInputIsNamedAndNoneIsWritten() async {
    let sum = Sum()
    let good = ResultOperation { 1 }
    good.pass(to: sum) { sum, value in sum.parts.append(value) }
    for index in 0..<2 {
      ResultOperation<Int> { throw TestError("\(index)") }.pass(to: sum) { sum, value in sum.parts.append(value) }
    }
    let error = await #expect(throws: OperationError.self) { try await queue.run(graphEndingIn: sum) }
    #expect(error?.code == .inputUnavailable && sum.errors.count == 1)
    #expect(error?.underlyingErrors as? [TestError] == [TestError("0"), TestError("1")])
    #expect(
      error?.description
        == "“Sum” has no input from “ResultOperation<Int>”, which failed, nor from “ResultOperation<Int>”, which failed: 0; 1"
    )
    #expect(sum.parts.isEmpty && sum.isCancelled)
  }

  @Test func ofManyMissingInputsAFewAreNamed() async {
    let all = collect((0..<100).map { index in ResultOperation<Int> { throw TestError("\(index)") } })
    let error = await #expect(throws: OperationError.self) { try await queue.run(graphEndingIn: all) }
    #expect(error?.message.contains("nor from 97 others") == true && (error?.description.count ?? .max) < 500)
  }

  @Test func anOptionalInputLetsTheConsumerExecute() async throws {
    let broken = ResultOperation<Int> { throw TestError("broken") }
    let fine = ResultOperation { 7 }
    let sum = Sum()
    broken.pass(to: sum, input: .optional) { sum, value in sum.parts.append(value) }
    fine.pass(to: sum, input: .optional) { sum, value in sum.parts.append(value) }
    #expect(try await queue.run(graphEndingIn: sum) == 7)
    let consumer = TransformOperation { (value: Int?) in value ?? -1 }
    broken.pass(to: consumer, input: .optional)
    #expect(try await queue.run(graphEndingIn: consumer) == -1)
    let given = TransformOperation { (value: Int?) in value ?? -1 }
    fine.pass(to: given, input: .optional)
    #expect(try await queue.run(given) == 7)
  }

  @Test func theAggregatesPrimaryFailureIsTheCause() async {
    let download = ResultOperation<Int> { throw TestError("no network") }.named("Download")
    let parse = TransformOperation { (value: Int) in value }
    download.pass(to: parse)
    let group = GroupOperation("Import") { parse }
    let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
    #expect(error?.failures.count == 2 && error?.primary.path == ["Import", "Download"])
  }

  @Test func aConsumerThatIsCancelledBeforeGetsNothing() async {
    let producer = ResultOperation { 1 }
    let consumer = AsyncOperation()
    producer.pass(to: consumer) { _, _ in Issue.record("written") }
    consumer.cancel()
    await queue.run(settling: [producer, consumer])
  }

  @Test func aHandOverMayEndTheConsumer() async {
    let producer = ResultOperation { 1 }
    let consumer = AsyncBlockOperation { _ in Issue.record("executed") }
    producer.pass(to: consumer) { consumer, _ in consumer.finish(with: TestError("refused")) }
    producer.pass(to: consumer) { _, _ in Issue.record("written to one that has finished") }
    await #expect(throws: TestError("refused")) { try await queue.run(graphEndingIn: consumer) }
  }

  @Test func whatIsNotWaitedForAnyMoreIsNotPassedEither() async throws {
    let producer = HeldOperation()
    let value = ResultOperation { 1 }
    producer ==> value
    let consumer = AsyncOperation()
    value.pass(to: consumer) { _, _ in Issue.record("written") }
    consumer.removeDependency(value)
    try await queue.run(consumer)
  }

  @Test func groupsTakeInputsToo() async throws {
    final class Import: GroupOperation, @unchecked Sendable {
      var pages = 0
    }
    let importer = Import([AsyncOperation()])
    ResultOperation { 3 }.pass(to: importer) { importer, pages in importer.pages = pages }
    try await queue.run(graphEndingIn: importer)
    #expect(importer.pages == 3)
    let member = AsyncBlockOperation { _ in Issue.record("executed") }
    let starved = Import([member])
    ResultOperation<Int> { throw TestError("none") }.pass(to: starved) { importer, pages in importer.pages = pages }
    await #expect(throws: AggregateError.self) { try await queue.run(graphEndingIn: starved) }
    #expect(member.isFinished && starved.isCancelled)
  }

  @Test func whatACancelledOneWaitedForIsEnqueuedAllTheSame() async throws {
    let producer = ResultOperation { 1 }
    let consumer = producer.map { $0 + 1 }
    consumer.cancel()
    queue.addGraph(endingIn: consumer)
    #expect(try await producer.value == 1)
  }

  @Test func theNamesOfTheFunctionsAreThoseOfTheInterface() async throws {
    let producer = ResultOperation { 1 }
    let consumer = TransformOperation { (value: Int) in value }
    let pass: (TransformOperation<Int, Int>) -> TransformOperation<Int, Int> = producer.pass(to:)
    let gather: ([ResultOperation<Int>]) -> ResultOperation<[Int]> = collect
    #expect(try await queue.run(graphEndingIn: gather([pass(consumer)])) == [1])
  }

  // MARK: Size

  @Test func longChainsOfErrorsStayShort() async {
    let first = ResultOperation<Int> { throw TestError("root") }
    var last: ResultOperation<Int> = first
    var group: [AsyncOperation] = [first]
    for _ in 0..<5000 {
      last = last.map { $0 + 1 }
      group.append(last)
    }
    let aggregate = await #expect(throws: AggregateError.self) { try await queue.run(GroupOperation(group)) }
    #expect(aggregate?.failures.count == 5001)
    #expect((error(of: last)?.description.count ?? .max) < 300)
    #expect(error(of: last)?.description.contains("root") == true)
  }

  @Test func aLongChainThatIsNeverRunIsReleasedWithoutRecursion() async {
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      var last: ResultOperation<Int> = ResultOperation { withExtendedLifetime(token) { 0 } }
      for _ in 0..<100_000 { last = last.map { $0 + 1 } }
    }
    await live.none()
  }

  @Test func producersAreReleasedWhenTheConsumerHasFinished() async throws {
    let live = LiveCount()
    let consumer = AsyncOperation()
    do {
      let token = LiveCount.Token(live)
      let producer = ResultOperation { token }
      producer.pass(to: consumer) { _, _ in }
      try await queue.run(graphEndingIn: consumer)
    }
    await live.none()
    withExtendedLifetime(consumer) {}
  }
}

extension OperationQueue {
  /// Runs operations to their end, whatever that is.
  func run(settling operations: [AsyncOperation]) async {
    addOperations(operations)
    for operation in operations { await operation.finished() }
  }
}
