public import Foundation

extension OperationQueue {
  /// Runs an operation for each element, at most `count` at once, and returns the results as they come.
  ///
  /// ```swift
  /// let pages = queue.results(of: urls, atMost: 6) { Download($0) }
  /// for await (url, page) in pages { show(page, for: url) }
  /// ```
  ///
  /// The results are in the order in which the operations finish. The elements are read lazily: an operation is made when
  /// fewer than `count` others are unfinished or have a result that was not read. A slow loop therefore slows the work
  /// down, and a long sequence needs no more memory than a short one.
  ///
  /// Leaving the loop, by `break`, by an error or because the task is cancelled, cancels the remaining operations and
  /// does not wait for them.
  ///
  /// - Parameters:
  ///   - elements: The elements, which are read on the task that iterates.
  ///   - count: The number of operations, at least 1.
  ///   - make: Makes a new operation, in no queue or group, on the task that iterates.
  /// - Precondition: The results are iterated once.
  public func results<S: Sequence, O: OutputOperation>(
    of elements: S,
    atMost count: Int,
    _ make: @escaping (S.Element) -> O
  ) -> OperationResults<S.Element, O.Output> {
    if count < 1 { misuse("At most \(count) operations at once would never run. Allow 1 or more.") }
    return OperationResults(
      ResultRun(elements, atMost: count) { element in
        let operation = make(element)
        self.addUnlessRefused(operation)
        return AnyOutputOperation(operation)
      }
    )
  }

  /// Runs an asynchronous function for each element, at most `count` at once, and returns the results as they come.
  ///
  /// Each call of the function is a ``TaskOperation``. For the rest, see the method for operations.
  @_disfavoredOverload
  public func results<S: Sequence, T: Sendable>(
    of elements: S,
    atMost count: Int,
    _ body: @escaping @Sendable (S.Element) async throws -> T
  ) -> OperationResults<S.Element, T> where S.Element: Sendable {
    if T.self is Operation.Type { misuse("An operation without a value has no result. Run it in the closure.") }
    return results(of: elements, atMost: count) { element in TaskOperation { try await body(element) } }
  }

  /// Runs operations, and returns their results in the order in which they finish.
  ///
  /// Operations that are in a queue or group stay there. Leaving the loop cancels the remaining operations.
  ///
  /// - Precondition: The results are iterated once.
  public func results<O: OutputOperation>(of operations: [O]) -> OperationResults<O, O.Output> {
    OperationResults(run(operations, atMost: max(operations.count, 1)))
  }

  /// Runs operations until one of them succeeds, returns its value, and cancels the others.
  ///
  /// ```swift
  /// let page = try await queue.first(of: mirrors.map { Download($0) }, staggered: .milliseconds(250))
  /// ```
  ///
  /// With `staggered`, the first operation begins alone. The next one begins when one has failed or this time has passed,
  /// as in RFC 8305 (Happy Eyeballs). The time is measured on the ``AsyncOperation/clock`` of the operation that began
  /// last. The method does not wait for the operations that it cancels. Cancelling the task cancels all operations.
  ///
  /// - Precondition: `operations` is not empty.
  /// - Throws: `CancellationError` if the task is cancelled. An ``AggregateError`` with the failures in the order of
  ///   `operations` if none succeeds.
  public func first<O: OutputOperation>(of operations: [O], staggered delay: Duration? = nil) async throws -> O.Output {
    if operations.isEmpty { misuse("There is no first of no operations. Pass at least one.") }
    let run = run(operations, atMost: delay == nil ? operations.count : 1, staggered: delay)
    defer { run.cancel() }
    while let (_, result) = await run.next() { if case .success(let value) = result { return value } }
    try Task.checkCancellation()
    throw AggregateError(operations.flatMap(\.failuresInPlace))
  }

  private func run<O: OutputOperation>(
    _ operations: [O],
    atMost count: Int,
    staggered delay: Duration? = nil
  ) -> ResultRun<O, O.Output> {
    let start = { (operation: O) in
      if operation.isFree {
        self.addUnlessRefused(operation)
      } else {
        do { try TaskWait(for: operation).refuseCycle() } catch { operation.cancelIfRefused(error) }
      }
      return AnyOutputOperation(operation)
    }
    return ResultRun(operations, atMost: count, staggered: delay, start, orElse: { $0.cancelEvenIfUnused() })
  }
}

/// The results of operations, as they finish: see `results(of:atMost:_:)` of a queue.
///
/// The sequence never throws: each result is a value or an error. It can be iterated once, by one task. Releasing it
/// without iterating cancels operations that were passed to it.
public struct OperationResults<Source, Output: Sendable>: AsyncSequence {
  /// An element, and the result of its operation.
  public typealias Element = (element: Source, result: Result<Output, any Error>)
  /// The iteration never throws.
  public typealias Failure = Never

  /// Reads the results. Releasing it cancels the operations whose results were not read.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let run: ResultRun<Source, Output>

    /// Waits for the next result. Returns nil when there is none left, or when the task is cancelled.
    public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Element? { await run.next() }
  }

  /// The run until the iteration begins. Releasing the iterator then cancels the operations.
  private let run: Locked<ResultRun<Source, Output>?>

  fileprivate init(_ run: ResultRun<Source, Output>) { self.run = Locked(run) }

  /// Begins the iteration. The operations are made by its first call of `next`.
  public func makeAsyncIterator() -> AsyncIterator {
    guard let run = run.withLock({ $0.take() }) else {
      misuse("The results of operations can be iterated once. Keep them in an array, or run new operations.")
    }
    return AsyncIterator(run: run)
  }
}

private final class ResultRun<Source, Output: Sendable> {
  private enum Event {
    case finished(Int)
    case timeDidPass
  }

  private var next: () -> Source?
  private let start: (Source) -> AnyOutputOperation<Output>
  private let stagger: Duration?
  /// Called with the elements that were not started when the run is cancelled.
  private let discard: ((Source) -> Void)?
  /// The number of operations that may be unfinished or unread.
  private var limit: Int
  private var unread: [Int: (element: Source, work: AnyOutputOperation<Output>)] = [:]
  private var startCount = 0
  private var timer: ClockTimer?
  private let (events, eventSource) = AsyncStream.makeStream(of: Event.self)

  init<S: Sequence<Source>>(
    _ elements: S,
    atMost limit: Int,
    staggered stagger: Duration? = nil,
    _ start: @escaping (Source) -> AnyOutputOperation<Output>,
    orElse discard: ((Source) -> Void)? = nil
  ) {
    var iterator = elements.makeIterator()
    next = { iterator.next() }
    (self.limit, self.stagger, self.discard, self.start) = (limit, stagger, discard, start)
  }

  deinit { cancel() }

  nonisolated(nonsending) func next() async -> OperationResults<Source, Output>.Element? {
    var iterator = events.makeAsyncIterator()
    while !Task.isCancelled {
      fill()
      if unread.isEmpty { return nil }
      switch await iterator.next(isolation: #isolation) {
      case .finished(let index):
        guard let (element, work) = unread.removeValue(forKey: index) else { continue }
        // A staggered run continues only if its caller does not accept this result.
        if stagger == nil { fill() }
        return (element, Result { try work.output(work.operation) })
      case .timeDidPass: limit += 1
      case nil: break
      }
    }
    cancel()
    return nil
  }

  private func fill() {
    while unread.count < limit, let element = next() {
      let work = start(element)
      let (index, events) = (startCount, eventSource)
      unread[index] = (element, work)
      startCount += 1
      work.operation.whenFinished { events.yield(.finished(index)) }
      guard let stagger else { continue }
      timer?.cancel()
      let timer = ClockTimer()
      self.timer = timer
      timer.start(after: stagger, on: work.operation.clock) { events.yield(.timeDidPass) }
    }
  }

  func cancel() {
    if let discard { while let element = next() { discard(element) } }
    next = { nil }
    timer?.cancel()
    for (_, work) in unread.values { work.operation.cancel() }
    unread = [:]
  }
}

extension AsyncOperation {
  /// Cancels the operation. One that was never added finishes.
  func cancelEvenIfUnused() {
    let isUnused = claimIfFree()
    cancel()
    if isUnused { startCancelled() }
  }

  fileprivate var failuresInPlace: [OperationFailure] {
    let name = displayName
    let failures = ownFailures.map { $0.below(name) }
    return failures.isEmpty ? [OperationFailure(path: [name], error: CancellationError())] : failures
  }
}
