import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Does something to an operation. Nil stands for the operation under test.
private typealias Body = @Sendable (AsyncOperation?) -> Void

/// Calls a closure in every method of a group that a subclass can override.
private final class CallingGroup: GroupOperation, @unchecked Sendable {
  private let body: Body

  init(_ members: [Operation], _ body: @escaping Body) {
    self.body = body
    super.init(members)
  }

  override func didCancel() { body(self) }
  override func didFinish() { body(self) }

  override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
    body(self)
    return errors
  }
}

/// Adds an observer to an operation, and returns it.
private func observed(_ operation: AsyncOperation = .init(), by observer: OperationObserver) -> AsyncOperation {
  operation.addObserver(observer)
  return operation
}

/// Calls a closure in its condition, which is not met if there is an error.
private func conditional(_ body: @escaping Body, error: TestError? = nil) -> AsyncOperation {
  let operation = AsyncOperation()
  operation.addCondition("c") { operation in
    body(operation)
    if let error { throw error }
  }
  return operation
}

/// The operation under test, which its own closures do not retain. Set before the operation is started.
private final class Itself: @unchecked Sendable { weak var operation: AsyncOperation? }

/// Whatever may be done to an operation, done in whatever it calls: it ends once, and nothing hangs.
@Suite(.timeLimit(.minutes(5)))
struct HostileReentrancyTests {
  struct Named<Value: Sendable>: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let value: Value

    init(_ name: String, _ value: Value) { (testDescription, self.value) = (name, value) }
  }

  typealias Action = Named<@Sendable (AsyncOperation) -> Void>
  /// Makes an operation that calls a closure in one of its callbacks.
  typealias Callback = Named<@Sendable (@escaping @Sendable (AsyncOperation?) -> Void) -> AsyncOperation>

  static let actions = [
    Action("finish") { $0.finish() },
    Action("fail") { $0.finish(with: TestError("again")) },
    Action("cancel") { $0.cancel() },
    Action("cancel with an error") { $0.cancel(with: TestError("a")) },
    Action("add an observer that adds an observer") { operation in
      let last = OperationObserver(didFinish: { $0.cancel() })
      operation.addObserver(didCancel: { _ in }, didFinish: { $0.addObserver(last) })
    },
    Action("time out at once") { $0.timeout = .shortest },
    Action("change the time") { operation in
      operation.timeout = nil
      operation.timeout = .longest
    },
    Action("change the completion block") { operation in
      operation.completionBlock = nil
      operation.completionBlock = { _ = operation.state }
    },
    Action("change the clock, the name, the priority and the quality of service") { operation in
      operation.clock = SuspendingClock()
      operation.name = "another \(operation.name ?? "")"
      operation.queuePriority = .veryHigh
      operation.qualityOfService = .background
    },
    Action("report progress") { operation in
      if operation is GroupOperation { return }
      operation.progress.totalUnitCount = 0
      operation.progress.totalUnitCount = .max
      operation.progress.completedUnitCount = .min
    },
    Action("cancel the progress") { $0.progress.cancel() },
    Action("add members, and have others wait for it") { operation in
      let next = AsyncOperation()
      operation ==> next
      OperationQueue().addOperation(next)
      if let group = operation as? GroupOperation, !group.isFinished { group.addOperation(AsyncOperation()) }
    },
    Action("suspend it, and resume it") { operation in
      guard let group = operation as? GroupOperation else { return }
      group.isSuspended = true
      group.maxConcurrentOperationCount = 0
      group.maxConcurrentOperationCount = OperationQueue.defaultMaxConcurrentOperationCount
      group.isSuspended = false
      group.errorPolicy = .cancelOnFailure
    },
    Action("take dependencies away") { operation in
      for dependency in operation.dependencies { operation.removeDependency(dependency) }
      operation.removeDependency(operation)
    },
    Action("look at everything") { operation in
      _ = (operation.state, operation.errors, operation.isSuccessful, operation.isReady, operation.dependencies)
      _ = (operation.timeout, operation.clock, operation.progress.fractionCompleted, "\(operation)")
      _ = (OperationGraph([operation]).mermaid(), operation.stallReport(), OperationQueue.current?.stallReport())
      let tracer = OperationTracer()
      tracer.trace(operation)
      _ = (tracer.chromeTrace(), tracer.timeline())
    },
    Action("pass it on") { operation in
      guard let producer = operation as? ResultOperation<Int> else { return }
      producer.onFinish { _ in operation.finish() }
      OperationQueue().addGraph(endingIn: producer.map { $0 })
    },
  ]

  static let callbacks = [
    Callback("execute") { body in
      AsyncBlockOperation { operation in
        body(operation)
        operation.finish()
      }
    },
    Callback("didStart") { observed(by: OperationObserver(didStart: $0)) },
    Callback("didCancel, as an observer") { body in
      let operation = AsyncBlockOperation { operation in
        operation.cancel()
        operation.finish()
      }
      return observed(operation, by: OperationObserver(didCancel: body))
    },
    Callback("didCancel, as an observer, before the start") { body in
      let operation = observed(by: OperationObserver(didCancel: body))
      operation.cancel()
      return operation
    },
    Callback("didFinish, as an observer") { observed(by: OperationObserver(didFinish: $0)) },
    Callback("a condition") { conditional($0) },
    Callback("an unmet condition") { conditional($0, error: TestError("unmet")) },
    Callback("a hand-over") { body in
      let producer = ResultOperation { 1 }
      OperationQueue().addOperation(producer)
      return producer.pass(to: AsyncOperation()) { consumer, _ in body(consumer) }
    },
    Callback("a transformation") { body in
      let transform = TransformOperation<Int, Int> { value in
        body(nil)
        return value
      }
      transform.input = 1
      return transform
    },
    Callback("a task") { body in
      TaskOperation<Int> {
        body(nil)
        return 1
      }
    },
    Callback("retryIf and make") { body in
      RetryOperation<Int>(
        attempts: 3,
        backoff: Backoff { _ in
          body(nil)
          return .zero
        },
        retryIf: { _, _ in
          body(nil)
          return true
        },
        { attempt in
          body(nil)
          return ResultOperation { if attempt < 3 { throw TestError("again") } else { attempt } }
        }
      )
    },
    Callback("flatMap") { body in
      let producer = ResultOperation { 1 }
      OperationQueue().addOperation(producer)
      return producer.flatMap { value in
        body(nil)
        return ResultOperation { value }
      }
    },
    Callback("a member of the group") { body in GroupOperation([ResultOperation { body(nil) }, AsyncOperation()]) },
    Callback("operation(_:didFinishWith:) and didFinish of a group") { body in
      CallingGroup([AsyncOperation(), AsyncBlockOperation { $0.finish(with: TestError("member")) }], body)
    },
    Callback("didCancel and didFinish of a group") { body in
      observed(CallingGroup([AsyncOperation()], body), by: OperationObserver(didStart: { $0.cancel() }))
    },
    Callback("an adapter") { body in
      let (source, target) = (AsyncOperation(), AsyncOperation())
      let adapter = AdapterOperation(from: source, to: target) { _, target in body(target) }
      OperationQueue().addOperations([source, adapter])
      return target
    },
    Callback("a delay that has begun") {
      observed(DelayOperation(.nanoseconds(1)), by: OperationObserver(didStart: $0))
    },
  ]

  @Test(arguments: callbacks, actions) func itEndsOnce(_ callback: Callback, _ action: Action) async {
    let (ends, calls, itself) = (Journal<Bool>(), Journal<Void>(), Itself())
    let operation = callback.value { operation in
      // A member that adds a member that adds a member is the user's own cycle.
      calls.write(())
      if calls.count <= 8, let operation = operation ?? itself.operation { action.value(operation) }
    }
    itself.operation = operation
    operation.addObserver(didFinish: { ends.write($0.isFinished) })
    await OperationQueue().run(settling: [operation])
    #expect(ends.entries == [true] && operation.state == .finished)
    try? await operation.completed()
  }

  @Test(arguments: [3, 16, 40]) func theClosureOfALateAttemptMayWaitForAnotherRetry(attempt: Int) async {
    let retry = RetryOperation<Int>(attempts: attempt) { number -> ResultOperation<Int> in
      if number == attempt {
        let inner = RetryOperation<Int>(attempts: 3) { _ in throw TestError("inner") }
        inner.start()
        inner.waitUntilFinished()
      }
      throw TestError("outer")
    }
    await OperationQueue().run(settling: [retry])
    #expect(!retry.isSuccessful)
  }

  @Test(arguments: [3, 40]) func anObserverFarOutsideMayWaitForTheGroupThatItCancels(levels: Int) async {
    let others = (0..<levels).map { _ in
      nestedGroups(around: StoppedOperation(reporting: TestError("stopped")), levels: levels + 1)
    }
    for other in others { await OperationQueue().begin(other) }
    var group = GroupOperation([AsyncBlockOperation { $0.finish() }])
    for other in others {
      group = GroupOperation([group])
      group.addObserver(didFinish: { _ in
        other.cancel()
        other.waitUntilFinished()
      })
    }
    await OperationQueue().run(settling: [group])
    #expect(others.allSatisfy { $0.isFinished })
  }
}
