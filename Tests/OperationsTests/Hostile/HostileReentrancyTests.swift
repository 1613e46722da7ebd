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

/// The operation that calls, which is not kept by what it calls.
private final class Itself: @unchecked Sendable {
  private weak var operation: AsyncOperation?

  /// Before the operation is started.
  func write(_ operation: AsyncOperation) { self.operation = operation }

  func `do`(_ body: @Sendable (AsyncOperation) -> Void) { if let operation { body(operation) } }
}

/// Whatever may be done to an operation, done in whatever it calls: it ends once, and nothing hangs.
@Suite(.timeLimit(.minutes(5)))
struct HostileReentrancyTests {
  /// Something that is done to an operation.
  struct Action: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let body: @Sendable (AsyncOperation) -> Void

    init(_ name: String, _ body: @escaping @Sendable (AsyncOperation) -> Void) {
      (testDescription, self.body) = (name, body)
    }
  }

  /// An operation that does it in one of its callbacks.
  struct Callback: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let make: @Sendable (@escaping @Sendable (AsyncOperation) -> Void) -> AsyncOperation

    init(_ name: String, _ make: @escaping @Sendable (@escaping @Sendable (AsyncOperation) -> Void) -> AsyncOperation) {
      (testDescription, self.make) = (name, make)
    }
  }

  static let actions = [
    Action("finish") { $0.finish() },
    Action("fail") { $0.finish(with: TestError("again")) },
    Action("fail with nothing") { $0.finish(withErrors: []) },
    Action("cancel") { $0.cancel() },
    Action("cancel with an error, twice") { operation in
      operation.cancel(with: TestError("a"))
      operation.cancel(with: TestError("b"))
    },
    Action("cancel, then finish") { operation in
      operation.cancel()
      operation.finish()
    },
    Action("add observers") { operation in
      for _ in 0..<3 {
        operation.addObserver(OperationObserver(didStart: { _ in }, didCancel: { _ in }, didFinish: { $0.finish() }))
      }
    },
    Action("add an observer that adds an observer") { operation in
      operation.addObserver(
        OperationObserver(didFinish: { $0.addObserver(OperationObserver(didFinish: { $0.cancel() })) })
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
    Callback("didStart") { body in
      let operation = AsyncOperation()
      operation.addObserver(OperationObserver(didStart: body))
      return operation
    },
    Callback("didCancel, as an observer") { body in
      let operation = AsyncBlockOperation { operation in
        operation.cancel()
        operation.finish()
      }
      operation.addObserver(OperationObserver(didCancel: body))
      return operation
    },
    Callback("didCancel, as an observer, before the start") { body in
      let operation = AsyncOperation()
      operation.addObserver(OperationObserver(didCancel: body))
      operation.cancel()
      return operation
    },
    Callback("didFinish, as an observer") { body in
      let operation = AsyncOperation()
      operation.addObserver(OperationObserver(didFinish: body))
      return operation
    },
    Callback("didCancel and didFinish") { CallingOperation($0) },
    Callback("a condition") { body in
      let operation = AsyncOperation()
      operation.addCondition(OperationCondition(name: "c") { body($0) })
      return operation
    },
    Callback("an unmet condition") { body in
      let operation = AsyncOperation()
      operation.addCondition(
        OperationCondition(name: "c") { operation in
          body(operation)
          throw TestError("unmet")
        }
      )
      return operation
    },
    Callback("a hand-over") { body in
      let producer = ResultOperation { 1 }
      OperationQueue().addOperation(producer)
      return producer.pass(to: AsyncOperation()) { consumer, _ in body(consumer) }
    },
    Callback("a transformation") { body in
      let itself = Itself()
      let transform = TransformOperation<Int, Int> { value in
        itself.do(body)
        return value
      }
      transform.input = 1
      itself.write(transform)
      return transform
    },
    Callback("a task") { body in
      let itself = Itself()
      let task = TaskOperation<Int> {
        itself.do(body)
        return 1
      }
      itself.write(task)
      return task
    },
    Callback("retryIf and make") { body in
      let itself = Itself()
      let retry = RetryOperation<Int>(
        attempts: 3,
        backoff: Backoff { _ in
          itself.do(body)
          return .zero
        },
        retryIf: { _, _ in
          itself.do(body)
          return true
        },
        { attempt in
          itself.do(body)
          return ResultOperation { if attempt < 3 { throw TestError("again") } else { attempt } }
        }
      )
      itself.write(retry)
      return retry
    },
    Callback("flatMap") { body in
      let itself = Itself()
      let producer = ResultOperation { 1 }
      let next = producer.flatMap { value in
        itself.do(body)
        return ResultOperation { value }
      }
      itself.write(next)
      OperationQueue().addOperation(producer)
      return next
    },
    Callback("a member of the group") { body in
      let itself = Itself()
      let group = GroupOperation([
        AsyncBlockOperation { member in
          itself.do(body)
          member.finish()
        },
        AsyncOperation(),
      ])
      itself.write(group)
      return group
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
    Callback("a delay that has begun") { body in
      let delay = DelayOperation(.nanoseconds(1))
      delay.addObserver(OperationObserver(didStart: body))
      return delay
    },
  ]

  @Test(arguments: callbacks, actions) func itEndsOnce(_ callback: Callback, _ action: Action) async {
    let (ends, calls) = (Journal<Bool>(), Journal<Void>())
    let body = action.body
    let operation = callback.make { operation in
      // A member that adds a member that adds a member is the user's own cycle.
      calls.write(())
      if calls.count <= 8 { body(operation) }
    }
    operation.addObserver(OperationObserver(didFinish: { ends.write($0.isFinished) }))
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(ends.entries == [true] && operation.state == .finished)
    _ = await completion(of: operation)
  }
}
