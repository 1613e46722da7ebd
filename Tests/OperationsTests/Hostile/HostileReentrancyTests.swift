import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Calls a closure in whatever is called of a group.
private final class CallingGroup: GroupOperation, @unchecked Sendable {
  private let body: @Sendable (AsyncOperation) -> Void

  init(_ members: [Operation], _ body: @escaping @Sendable (AsyncOperation) -> Void) {
    self.body = body
    super.init(members)
  }

  override func didFinish() { body(self) }

  override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
    body(self)
    return errors
  }
}

/// Calls a closure in whatever is called of an operation.
private final class CallingOperation: AsyncOperation, @unchecked Sendable {
  private let body: @Sendable (AsyncOperation) -> Void

  init(_ body: @escaping @Sendable (AsyncOperation) -> Void) {
    self.body = body
    super.init()
  }

  override func execute() {
    cancel()
    finish()
  }

  override func didCancel() { body(self) }
  override func didFinish() { body(self) }
}

/// Adds an observer to an operation, and returns it.
private func observed(by observer: OperationObserver, _ operation: AsyncOperation = AsyncOperation()) -> AsyncOperation
{
  operation.addObserver(observer)
  return operation
}

/// Calls a closure in its condition, which is not met if there is an error.
private func conditional(_ body: @escaping @Sendable (AsyncOperation) -> Void, error: TestError?) -> AsyncOperation {
  let operation = AsyncOperation()
  operation.addCondition(
    OperationCondition(name: "c") { operation in
      body(operation)
      if let error { throw error }
    }
  )
  return operation
}

/// The operation that calls, which is not kept by what it calls. Set before the operation is started.
private final class Itself: @unchecked Sendable {
  weak var operation: AsyncOperation?
}

/// Makes an operation from a closure that calls `body` with it.
private func calling<O: AsyncOperation>(
  _ body: @escaping @Sendable (AsyncOperation) -> Void,
  _ make: (@escaping @Sendable () -> Void) -> O
) -> O {
  let itself = Itself()
  let operation = make { if let operation = itself.operation { body(operation) } }
  itself.operation = operation
  return operation
}

/// Whatever may be done to an operation, done in whatever it calls: it ends once, and nothing hangs.
@Suite(.timeLimit(.minutes(5)))
struct HostileReentrancyTests {
  typealias Body = @Sendable (AsyncOperation) -> Void

  /// Something that is done to an operation.
  struct Action: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let body: Body

    init(_ name: String, _ body: @escaping Body) { (testDescription, self.body) = (name, body) }
  }

  /// An operation that does it in one of its callbacks.
  struct Callback: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let make: @Sendable (@escaping Body) -> AsyncOperation

    init(_ name: String, _ make: @escaping @Sendable (@escaping Body) -> AsyncOperation) {
      (testDescription, self.make) = (name, make)
    }
  }

  static let actions = [
    Action("finish") { $0.finish() },
    Action("fail") { $0.finish(with: TestError("again")) },
    Action("cancel") { $0.cancel() },
    Action("cancel with an error") { $0.cancel(with: TestError("a")) },
    Action("add an observer that adds an observer") { operation in
      let last = OperationObserver(didFinish: { $0.cancel() })
      operation.addObserver(
        OperationObserver(didStart: { _ in }, didCancel: { _ in }, didFinish: { $0.addObserver(last) })
      )
    },
    Action("time out at once") { $0.timeout = .shortest },
    Action("never time out") { $0.timeout = .longest },
    Action("change the time") { operation in
      operation.timeout = .seconds(1000)
      operation.timeout = nil
    },
    Action("change the clock") { $0.clock = SuspendingClock() },
    Action("change the name") { $0.name = "another \($0.name ?? "")" },
    Action("change the completion block") { operation in
      operation.completionBlock = { operation.cancel() }
      operation.completionBlock = nil
      operation.completionBlock = { _ = operation.state }
    },
    Action("change the priority and the quality of service") { operation in
      operation.queuePriority = .veryHigh
      operation.qualityOfService = .background
    },
    Action("report progress") { operation in
      if operation is GroupOperation { return operation.progress.cancel() }
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
      _ = (OperationGraph([operation]).mermaid(), OperationQueue.current?.stallReport().description)
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
      return observed(by: OperationObserver(didCancel: body), operation)
    },
    Callback("didCancel, as an observer, before the start") { body in
      let operation = observed(by: OperationObserver(didCancel: body))
      operation.cancel()
      return operation
    },
    Callback("didFinish, as an observer") { observed(by: OperationObserver(didFinish: $0)) },
    Callback("didCancel and didFinish") { CallingOperation($0) },
    Callback("a condition") { conditional($0, error: nil) },
    Callback("an unmet condition") { conditional($0, error: TestError("unmet")) },
    Callback("a hand-over") { body in
      let producer = ResultOperation { 1 }
      OperationQueue().addOperation(producer)
      return producer.pass(to: AsyncOperation()) { consumer, _ in body(consumer) }
    },
    Callback("a transformation") { body in
      let transform = calling(body) { call in
        TransformOperation<Int, Int> { value in
          call()
          return value
        }
      }
      transform.input = 1
      return transform
    },
    Callback("a task") { body in
      calling(body) { call in
        TaskOperation<Int> {
          call()
          return 1
        }
      }
    },
    Callback("retryIf and make") { body in
      calling(body) { call in
        RetryOperation<Int>(
          attempts: 3,
          backoff: Backoff { _ in
            call()
            return .zero
          },
          retryIf: { _, _ in
            call()
            return true
          },
          { attempt in
            call()
            return ResultOperation { if attempt < 3 { throw TestError("again") } else { attempt } }
          }
        )
      }
    },
    Callback("flatMap") { body in
      let producer = ResultOperation { 1 }
      OperationQueue().addOperation(producer)
      return calling(body) { call in
        producer.flatMap { value in
          call()
          return ResultOperation { value }
        }
      }
    },
    Callback("a member of the group") { body in
      calling(body) { call in GroupOperation([ResultOperation { call() }, AsyncOperation()]) }
    },
    Callback("operation(_:didFinishWith:) and didFinish of a group") { body in
      CallingGroup([AsyncOperation(), AsyncBlockOperation { $0.finish(with: TestError("member")) }], body)
    },
    Callback("an adapter") { body in
      let (source, target) = (AsyncOperation(), AsyncOperation())
      let adapter = AdapterOperation(from: source, to: target) { _, target in body(target) }
      OperationQueue().addOperations([source, adapter])
      return target
    },
    Callback("a delay that has begun") {
      observed(by: OperationObserver(didStart: $0), DelayOperation(.nanoseconds(1)))
    },
  ]

  @Test(arguments: callbacks, actions) func itEndsOnce(_ callback: Callback, _ action: Action) async {
    let (ends, calls) = (Journal<Bool>(), Journal<Void>())
    let operation = callback.make { operation in
      // A member that adds a member that adds a member is the user's own cycle.
      calls.write(())
      if calls.count <= 8 { action.body(operation) }
    }
    operation.addObserver(OperationObserver(didFinish: { ends.write($0.isFinished) }))
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(ends.entries == [true] && operation.state == .finished)
    _ = await completion(of: operation)
  }
}
