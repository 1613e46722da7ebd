import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct PassTests {
  private let queue = OperationQueue()

  private final class Sum: ResultOperation<Int>, @unchecked Sendable {
    var parts: [Int] = []
    override func execute() { finish(returning: parts.reduce(0, +)) }
  }

  private func error(of operation: AsyncOperation) -> OperationError? { operation.errors.first as? OperationError }

  @Test func manyProducersHandOverInTheOrderOfTheCallsOneAtATime() async throws {
    let sum = Sum()
    let producers = (0..<200).map { index in ResultOperation { index } }
    for producer in producers { producer.pass(to: sum) { sum, value in sum.parts.append(value) } }
    try await queue.run(GroupOperation(producers.shuffled() + [sum]))
    #expect(sum.parts == Array(0..<200))
  }

  @Test(arguments: [false, true])
  func theHandOverIsOnTheConsumersThreadJustBeforeItExecutes(hasCondition: Bool) async throws {
    let (threads, journal) = (Journal<ObjectIdentifier>(), Journal<String>())
    let consumer = ResultOperation { ObjectIdentifier(Thread.current) }
    if hasCondition { consumer.addCondition("met") { _ in journal.write("condition") } }
    ResultOperation { 1 }.pass(to: consumer) { consumer, _ in
      threads.write(ObjectIdentifier(Thread.current))
      journal.write("\(consumer.state)")
    }
    #expect(try await queue.run(consumer) == threads.entries.first)
    #expect(journal.entries == (hasCondition ? ["condition", "pending"] : ["pending"]))
  }

  // MARK: No value

  @Test func aFailedProducerCancelsItsConsumersAllTheWayDown() async {
    let download = ResultOperation<Int> { throw TestError("no network") }.named("Download")
    let parse = TransformOperation { (value: Int) in value }.named("Parse")
    let store = TransformOperation { (value: Int) in value }.named("Store")
    download.pass(to: parse).pass(to: store)
    await #expect(throws: OperationError.self) { try await queue.run(store) }
    for operation in [parse, store] { #expect(operation.isCancelled && operation.errors.count == 1) }
    #expect(error(of: parse)?.code == .inputUnavailable)
    #expect(error(of: parse)?.description == "“Parse” has no input from “Download”, which failed: no network")
    #expect(error(of: parse)?.underlyingErrors as? [TestError] == [TestError("no network")])
    #expect(error(of: store)?.description == "“Store” has no input from “Parse”, because “Download” failed: no network")
    #expect(error(of: store)?.underlyingErrors as? [OperationError] == [OperationError(.inputUnavailable, "")])
  }

  /// Stands for `null` in a document, which is a value.
  private enum JSON: ExpressibleByNilLiteral {
    case null
    init(nilLiteral: ()) { self = .null }
  }

  @Test func onlyAnOptionalInputIsNilIfItIsMissing() async throws {
    let optional = TransformOperation { (_: Int?) in 1 }
    #expect(try await queue.run(optional) == 1)
    let other = TransformOperation { (_: JSON) in Issue.record("executed") }.named("other")
    let error = await #expect(throws: OperationError(.inputUnavailable, "")) { try await queue.run(other) }
    #expect(error?.message.contains("“other” has no input") == true)
  }

  @Test(arguments: [false, true])
  func aProducerWithoutAValueCancelsItsConsumers(isCancelled: Bool) async {
    let producer = ResultOperation<Int>().named("producer")
    let consumer = TransformOperation { (_: Int) in Issue.record("executed") }.named("consumer")
    producer.pass(to: consumer)
    if isCancelled { producer.cancel() }
    let error = await #expect(throws: OperationError(.inputUnavailable, "")) { try await queue.run(consumer) }
    let reason = isCancelled ? "which was cancelled." : "which failed: “producer” finished without a value."
    #expect(error?.message.hasPrefix("“consumer” has no input from “producer”, \(reason)") == true)
    let cause = error?.underlyingErrors.first
    #expect(isCancelled ? cause is CancellationError : (cause as? OperationError)?.code == .outputMissing)
  }

  private enum Failure: CaseIterable { case error, cancellation, noValue, beforeTheCall }

  /// A chain of consumers, each of which also waits for a producer that is executing.
  @Test(arguments: Failure.allCases, [false, true])
  private func theFirstMissingInput_cancelsConsumersThatWaitForOthers(failure: Failure, inAGroup: Bool) async throws {
    let (held, first) = (HeldResult().named("held"), ResultOperation<Int>().named("first"))
    first.finishesWhenCancelled = true
    if failure == .beforeTheCall { await end(first, by: failure) }
    let (count, journal) = (inAGroup && isThorough ? 100_000 : 1_000, Journal<String>())
    var last: ResultOperation<Int> = first
    for _ in 0..<count { last = collect([last, held]).map(\.count) }
    let sum = zip(last, held).named("sum")
    sum.addObserver(didCancel: { _ in journal.write(first.isFinished ? "after" : "before") })
    if inAGroup {
      let group = GroupOperation("group").started()
      group.addGraph(endingIn: sum)
      group.finish()
    } else {
      queue.addGraph(endingIn: sum)
    }
    await held.begun.opened()
    if failure != .beforeTheCall { await end(first, by: failure) }
    let error = await #expect(throws: OperationError.self) { try await sum.completed() }
    #expect(error?.code == .inputUnavailable && sum.isCancelled && !held.isFinished)
    #expect(error?.message.hasPrefix("“sum” has no input from “transform operation”, because “first” ") == true)
    #expect(journal.entries == ["after"])
    held.finish(returning: 1)
    await held.finished()
  }

  private func end(_ producer: ResultOperation<Int>, by failure: Failure) async {
    switch failure {
    case .error: producer.finish(with: TestError("broken"))
    case .cancellation: producer.cancel()
    case .noValue, .beforeTheCall: producer.finish()
    }
    if failure == .beforeTheCall { producer.start() }
    await producer.finished()
  }

  @Test func onlyOneThatNeedsTheInput_isCancelledAtOnce() async throws {
    let (held, failing) = (HeldResult(), ResultOperation<Int> { throw TestError("broken") })
    let optional = collect([failing, held], input: .optional)
    let removed = collect([failing, held])
    removed.removeDependency(failing)
    let released = LiveCount()
    do {
      let token = LiveCount.Token(released)
      failing.pass(to: held.map { value in withExtendedLifetime(token) { value } }) { _, _ in }
    }
    await released.none()
    queue.addOperations([failing, held, optional, removed])
    await failing.finished()
    #expect(!optional.isCancelled && !removed.isCancelled)
    await held.begun.opened()
    held.finish(returning: 7)
    for consumer in [optional, removed] { #expect(try await consumer.value == [7]) }
  }

  @Test func anOptionalInputLetsTheConsumerExecute() async throws {
    let (broken, fine) = (ResultOperation<Int> { throw TestError("broken") }, ResultOperation { 7 })
    for (producer, value) in [(broken, -1), (fine, 7)] {
      let consumer = TransformOperation { (value: Int?) in value ?? -1 }
      producer.pass(to: consumer, input: .optional)
      #expect(try await queue.run(consumer) == value)
    }
  }

  @Test func endedBeforeItsStartOrByAHandOver_getsNoFurtherValue() async {
    let producer = ResultOperation { 1 }
    let (cancelled, ended) = (AsyncOperation(), unexecuted())
    cancelled.cancel()
    producer.pass(to: ended) { consumer, _ in consumer.finish(with: TestError("refused")) }
    for consumer in [cancelled, ended] { producer.pass(to: consumer) { _, _ in Issue.record("written") } }
    await queue.run(settling: [producer, cancelled, ended])
    #expect(ended.errors as? [TestError] == [TestError("refused")])
  }

  @Test func groupsTakeInputsToo() async throws {
    let (importer, pages) = (GroupOperation([AsyncOperation()]), Journal<Int>())
    ResultOperation { 3 }.pass(to: importer) { _, count in pages.write(count) }
    try await queue.run(importer)
    #expect(pages.entries == [3])
    let member = unexecuted()
    let starved = GroupOperation([member])
    ResultOperation<Int> { throw TestError("none") }.pass(to: starved) { _, _ in Issue.record("written") }
    await #expect(throws: AggregateError.self) { try await queue.run(starved) }
    #expect(member.isFinished && starved.isCancelled)
  }

  @Test func whatACancelledOneWaitedForIsEnqueuedAllTheSame() async throws {
    let producer = ResultOperation { 1 }
    let consumer = producer.map { $0 + 1 }
    consumer.cancel()
    queue.addGraph(endingIn: consumer)
    #expect(try await producer.value == 1)
  }

  // MARK: Size

  @Test func aLongChainThatIsNeverRunIsReleasedWithoutRecursion() async {
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      var last: ResultOperation<Int> = ResultOperation { withExtendedLifetime(token) { 0 } }
      for _ in 0..<(isThorough ? 100_000 : 35_000) { last = last.map { $0 + 1 } }
    }
    await live.none()
  }

  @Test func producersAreReleasedWhenTheConsumerHasFinished() async throws {
    let (live, consumer) = (LiveCount(), AsyncOperation())
    do {
      let token = LiveCount.Token(live)
      let producer = ResultOperation { token }
      producer.pass(to: consumer) { _, _ in }
      try await queue.run(consumer)
    }
    await live.none()
    #expect(consumer.dependencies.isEmpty)
  }

  // MARK: Adapters

  /// A plain Foundation operation with an output and an input.
  private final class Plain: Operation, @unchecked Sendable {
    var text = ""
    override func main() { text += "!" }
  }

  private final class Own: AsyncOperation, @unchecked Sendable {
    var text = ""
    override func execute() {
      text += "?"
      finish()
    }
  }

  @Test func itJoinsOperationsOfBothKinds() async {
    let (own, plain, second, last) = (Own(), Plain(), Plain(), Own())
    let adapters = [
      AdapterOperation(from: own, to: plain) { $1.text = $0.text },
      AdapterOperation(from: plain, to: second) { $1.text = $0.text },
      AdapterOperation(from: second, to: last) { $1.text = $0.text },
    ]
    await queue.run(settling: [last, second, plain] + adapters + [own])
    #expect(last.text == "?!!?" && adapters.allSatisfy(\.isSuccessful))
  }

  @Test(arguments: ["source", "adapter"]) func aFailedSourceOrTransferCancelsTheTarget(failing name: String) async {
    let (broken, target) = (TestError("broken"), Own().named("target"))
    let source = AsyncBlockOperation { $0.finish(withErrors: name == "source" ? [broken] : []) }.named("source")
    let adapter = AdapterOperation(from: source, to: target) { _, _ in
      #expect(name == "adapter")
      throw broken
    }
    await queue.run(settling: [source, adapter.named("adapter"), target])
    #expect(target.isCancelled && target.text.isEmpty)
    #expect(error(of: target)?.description == "“target” has no input from “\(name)”, which failed: broken")
    #expect(error(of: target)?.underlyingErrors as? [TestError] == [broken])
    #expect(name == "source" || adapter.errors as? [TestError] == [broken])
  }

  @Test(arguments: [false, true])
  func aCancelledSourceOrAdapterCancelsAPlainTarget(isSource: Bool) async {
    let (source, target) = (Plain(), Plain())
    let adapter = AdapterOperation(from: source, to: target) { _, _ in Issue.record("transferred") }
    (isSource ? source : adapter).cancel()
    await queue.run(settling: [source, adapter, target])
    #expect(target.isCancelled && target.text.isEmpty)
  }

  @Test(arguments: [false, true])
  func oneThatAnObserverEndsKeepsItsTargetAlive(cancels: Bool) async {
    for _ in 0..<20 {
      let live = LiveCount()
      do {
        let source = AsyncOperation()
        let adapter = AdapterOperation(from: source, to: BlockOperation(block: live.counted())) { _, _ in }
        adapter.addObserver(didStart: { adapter in
          if cancels { adapter.cancel() }
          adapter.finish()
        })
        await queue.run(settling: [source, adapter])
      }
      await live.none()
    }
  }

  @Test func anOptionalInputIsTransferredAllTheSame() async {
    let (source, target) = (AsyncBlockOperation { $0.finish(with: TestError("broken")) }, Own())
    let adapter = AdapterOperation(from: source, to: target, input: .optional) { $1.text = "\($0.errors.count)" }
    await queue.run(settling: [source, adapter, target])
    #expect(target.text == "1?")
  }

  @Test func nothingIsLeftAlive() async {
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      let (source, target) = (Own(), Plain())
      let adapter = AdapterOperation(from: source, to: target) { _, _ in withExtendedLifetime(token) {} }
      await queue.run(settling: [source, adapter, target])
      // Never run.
      let (first, second) = (Own(), Own())
      _ = AdapterOperation(from: first, to: second) { _, _ in withExtendedLifetime(token) {} }
    }
    await live.none()
  }
}
