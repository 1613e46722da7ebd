import Foundation
import Operations
import OperationsTestSupport
import Soak

/// Writes its name when it executes, and finishes.
final class NoteOperation: AsyncOperation, @unchecked Sendable {
  private let journal: Journal<String>
  private let error: (any Error)?

  init(_ name: String, _ journal: Journal<String>, failing error: (any Error)? = nil) {
    self.journal = journal
    self.error = error
    super.init()
    named(name)
  }

  override func execute() {
    journal.write(name ?? "")
    if let error { finish(with: error) } else { finish() }
  }
}

protocol NotingSuite {
  var journal: Journal<String> { get }
}

extension NotingSuite {
  func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  func failing(_ name: String) -> NoteOperation {
    NoteOperation(name, journal, failing: TestError("error of \(name)"))
  }
}

/// Opens one gate when it begins, and finishes when another one is opened.
final class HeldOperation: AsyncOperation, @unchecked Sendable {
  let (gate, begun) = (Gate(), Gate())

  override func execute() {
    // Weakly, because the gate of an operation that has timed out may never be opened.
    gate.whenOpen { [weak self] in self?.finish() }
    // Last, so that whoever has waited for this finishes the operation by opening the gate.
    begun.open()
  }
}

/// Executes until it is cancelled, and then finishes with an error.
final class StoppedOperation: AsyncOperation, @unchecked Sendable {
  let begun = Gate()
  private let error: any Error

  init(reporting error: any Error) {
    self.error = error
    super.init()
  }

  override func execute() { begun.open() }
  override func didCancel() { finish(with: error) }
}

/// An operation whose end of life is seen.
final class CountedOperation: AsyncOperation, @unchecked Sendable {
  private let token: LiveCount.Token
  init(_ live: LiveCount) { token = LiveCount.Token(live) }
}

/// A group whose end of life is seen.
final class CountedGroup: GroupOperation, @unchecked Sendable {
  private let token: LiveCount.Token

  init(_ live: LiveCount, _ operations: [Operation]) {
    token = LiveCount.Token(live)
    super.init(operations)
  }
}

/// An error with a description. Two errors are equal if their descriptions are.
struct TestError: Error, Hashable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

func succeeding(at success: Int) -> @Sendable (Int) -> ResultOperation<Int> {
  { attempt in ResultOperation { if attempt < success { throw TestError("again") } else { attempt } } }
}

func plain(_ name: String, _ journal: Journal<String>) -> BlockOperation {
  BlockOperation { journal.write(name) }.named(name)
}

/// An asynchronous Foundation operation of the classic kind, which finishes by key-value notifications.
final class ClassicOperation: Operation, @unchecked Sendable {
  let (gate, begun) = (Gate(), Gate())
  private let lock = NSLock()
  private var flags = (executing: false, finished: false)

  override var isAsynchronous: Bool { true }
  override var isExecuting: Bool { lock.withLock { flags.executing } }
  override var isFinished: Bool { lock.withLock { flags.finished } }

  override func start() {
    set { $0.executing = true }
    begun.open()
    if isCancelled { return end() }
    gate.whenOpen { self.end() }
  }

  private func end() { set { $0 = (executing: false, finished: true) } }

  private func set(_ change: (inout (executing: Bool, finished: Bool)) -> Void) {
    willChangeValue(for: \.isExecuting)
    willChangeValue(for: \.isFinished)
    lock.withLock { change(&flags) }
    didChangeValue(for: \.isExecuting)
    didChangeValue(for: \.isFinished)
  }
}

extension Operation {
  /// Opens a gate, and waits for the end of the operation.
  func finished(opening gate: Gate) async {
    gate.open()
    await finished()
  }
}

extension AsyncOperation {
  /// Adds an observer with these closures.
  func addObserver(
    didStart: (@Sendable (AsyncOperation) -> Void)? = nil,
    didCancel: (@Sendable (AsyncOperation) -> Void)? = nil,
    didFinish: (@Sendable (AsyncOperation) -> Void)? = nil
  ) {
    addObserver(OperationObserver(didStart: didStart, didCancel: didCancel, didFinish: didFinish))
  }

  func addCondition(_ name: String, _ evaluate: @escaping @Sendable (AsyncOperation) async throws -> Void) {
    addCondition(OperationCondition(name: name, evaluate))
  }
}

extension Journal {
  /// Returns all entries when there are this many.
  func all(_ count: Int) async -> [Entry] {
    await reaches(count)
    return entries
  }
}

extension ManualClock {
  /// Advances as soon as there are this many sleepers.
  func advance(by duration: Duration, sleepers: Int) async {
    await waitForSleepers(sleepers)
    advance(by: duration)
  }
}

extension LiveCount {
  /// Returns a closure that is counted as long as it lives.
  func counted(_ body: @escaping @Sendable () -> Void = {}) -> @Sendable () -> Void {
    let token = Token(self)
    return { withExtendedLifetime(token, body) }
  }
}

/// Runs `body` on this many threads at once, and waits for them without holding one of the test's.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
  await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
    DispatchQueue.global().async {
      DispatchQueue.concurrentPerform(iterations: count, execute: body)
      continuation.resume()
    }
  }
}

/// Starts an operation by hand from asynchronous code, on a thread of Dispatch.
func start(_ operation: Operation) async { await onThreads(1) { _ in operation.start() } }

/// An operation whose priority changes without its setter.
final class PriorityOperation: AsyncOperation, @unchecked Sendable {
  let priority: Locked<Operation.QueuePriority>

  init(_ priority: Operation.QueuePriority) {
    self.priority = Locked(priority)
    super.init()
  }

  override var queuePriority: Operation.QueuePriority {
    get { priority.withLock { $0 } }
    set {}
  }
}

/// A plain operation that calls a closure in the middle of its addition to a group, which reads the priority.
final class PriorityProbe: Operation, @unchecked Sendable {
  private let isRead = Locked({})

  func whenRead(_ body: @escaping () -> Void) { isRead.withLock { $0 = body } }

  override var queuePriority: QueuePriority {
    get {
      isRead.withLock { $0 }()
      return super.queuePriority
    }
    set { super.queuePriority = newValue }
  }
}
