import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct AdapterOperationTests {
  private let queue = OperationQueue()

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
    queue.addOperations([last, second, plain] + adapters + [own])
    await last.finished()
    #expect(last.text == "?!!?" && adapters.allSatisfy(\.isSuccessful))
  }

  @Test func aFailedSourceCancelsTheTarget() async {
    let source = AsyncBlockOperation { $0.finish(with: TestError("no source")) }.named("source")
    let target = Own().named("target")
    let adapter = AdapterOperation(from: source, to: target) { _, _ in Issue.record("transferred") }
    await queue.run(settling: [source, adapter, target])
    #expect(target.isCancelled && target.text.isEmpty)
    let error = target.errors.first as? OperationError
    #expect(error?.description == "“target” has no input from “source”, which failed: no source")
    #expect(error?.underlyingErrors as? [TestError] == [TestError("no source")])
  }

  @Test(arguments: [false, true])
  func aCancelledSourceOrAdapterCancelsAPlainTarget(isSource: Bool) async {
    let (source, target) = (Plain(), Plain())
    let adapter = AdapterOperation(from: source, to: target) { _, _ in Issue.record("transferred") }
    (isSource ? source : adapter).cancel()
    queue.addOperations([source, adapter, target])
    await target.finished()
    #expect(target.isCancelled && target.text.isEmpty)
  }

  @Test func aTransferThatThrowsCancelsTheTarget() async {
    let (source, target) = (Own(), Own())
    let adapter = AdapterOperation(from: source, to: target) { _, _ in throw TestError("does not fit") }
    await queue.run(settling: [source, adapter, target])
    #expect(adapter.errors as? [TestError] == [TestError("does not fit")])
    #expect(target.isCancelled && (target.errors.first as? OperationError)?.code == .inputUnavailable)
  }

  @Test(arguments: [false, true])
  func oneThatAnObserverEndsKeepsItsTargetAlive(cancels: Bool) async {
    for _ in 0..<20 {
      let live = LiveCount()
      do {
        let source = AsyncOperation()
        let adapter = AdapterOperation(from: source, to: CountedPlain(live)) { _, _ in }
        adapter.addObserver(
          OperationObserver(didStart: { adapter in
            if cancels { adapter.cancel() }
            adapter.finish()
          })
        )
        queue.addOperations([source, adapter])
        await adapter.finished()
      }
      await live.none()
    }
  }

  private final class CountedPlain: Operation, @unchecked Sendable {
    private let token: LiveCount.Token
    init(_ live: LiveCount) { token = LiveCount.Token(live) }
  }

  @Test func anOptionalInputIsTransferredAllTheSame() async {
    let source = AsyncBlockOperation { $0.finish(with: TestError("broken")) }
    let target = Own()
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
      queue.addOperations([source, adapter, target])
      await target.finished()
      // Never run.
      let (first, second) = (Own(), Own())
      _ = AdapterOperation(from: first, to: second) { _, _ in withExtendedLifetime(token) {} }
    }
    await live.none()
  }
}
