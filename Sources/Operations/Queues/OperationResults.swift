import Foundation

extension OperationContainer {
  /// Runs an operation for each element, at most `count` at once, and returns the results as they come.
  ///
  /// ```swift
  /// let pages = queue.results(of: urls, atMost: 6) { Download($0) }
  /// for await (url, result) in pages {
  ///   if case .success(let page) = result { show(page, for: url) }
  /// }
  /// ```
  ///
  /// The elements are read lazily: an operation is made when fewer than `count` others are unfinished or have a result that
  /// was not read. A slow loop therefore slows the work down, and a long sequence needs no more memory than a short one.
  ///
  /// Leaving the loop, by `break`, an error or a cancellation, cancels the remaining operations without waiting.
  ///
  /// - Parameters:
  ///   - elements: The elements, which are read on the task that iterates.
  ///   - count: The number of operations, at least 1.
  ///   - isOrdered: Whether the results are in the order of the elements. Otherwise they are in the order in which the
  ///     operations finish. A result that waits for an earlier one counts among `count`.
  ///   - make: Makes a new operation, in no queue or group, on the task that iterates.
  /// - Precondition: The results are iterated once.
  public func results<S: Sequence, O: OutputOperation>(
    of elements: S,
    atMost count: Int,
    ordered isOrdered: Bool = false,
    _ make: @escaping (S.Element) -> O
  ) -> OperationResults<S.Element, O.Output> {
    OperationResults(ResultRun(elements, atMost: count, ordered: isOrdered) { self.start(make($0)) })
  }

  /// Runs an asynchronous function for each element, at most `count` at once, and returns the results as they come.
  ///
  /// Each call of the function is a ``TaskOperation``. For the rest, see the method for operations.
  @_disfavoredOverload
  public func results<S: Sequence, T: Sendable>(
    of elements: S,
    atMost count: Int,
    ordered isOrdered: Bool = false,
    _ body: @escaping @Sendable (S.Element) async throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> OperationResults<S.Element, T> where S.Element: Sendable {
    if T.self is Operation.Type {
      misuse("An operation without a value has no result. Run it in the closure.", file: file, line: line)
    }
    return results(of: elements, atMost: count, ordered: isOrdered) { element in
      TaskOperation({ try await body(element) }, file: file, line: line)
    }
  }

  /// Runs an asynchronous function for each element of an asynchronous sequence, and returns the results as they come.
  ///
  /// ```swift
  /// let reports = queue.results(of: lines, atMost: 4, ordered: true) { try await check($0) }
  /// for try await (line, report) in reports { print(line, report) }
  /// ```
  ///
  /// A task reads the elements one by one, each when there is room for its operation. An error of the sequence ends the
  /// results, which throw it after the results of the elements before it. Leaving the loop also cancels that task, which
  /// then reads no further element. For the rest, see the method for a sequence.
  public func results<S: AsyncSequence, T: Sendable>(
    of elements: sending S,
    atMost count: Int,
    ordered isOrdered: Bool = false,
    _ body: @escaping @Sendable (S.Element) async throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ElementResults<S.Element, T, S.Failure> where S.Element: Sendable {
    let run = ResultRun(reading: elements, atMost: count, ordered: isOrdered) { element in
      self.start(TaskOperation({ try await body(element) }, file: file, line: line))
    }
    return ElementResults(run)
  }

  /// Runs operations, and returns their results in the order in which they finish, or in the order of the operations.
  ///
  /// Operations that are in a queue or group stay there. Leaving the loop cancels the remaining operations.
  ///
  /// - Precondition: The results are iterated once.
  public func results<O: OutputOperation>(
    of operations: [O],
    ordered isOrdered: Bool = false
  ) -> OperationResults<O, O.Output> {
    OperationResults(run(operations, atMost: operations.count, ordered: isOrdered))
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
  /// - Throws: `CancellationError` if the task is cancelled. An ``AggregateError`` with the failures in the order of
  ///   `operations` if none succeeds. It is empty if `operations` is.
  public func first<O: OutputOperation>(of operations: [O], staggered delay: Duration? = nil) async throws -> O.Output {
    let run = run(operations, atMost: delay == nil ? operations.count : 1, staggered: delay)
    defer { run.cancel() }
    while let (_, result) = await run.next() { if case .success(let value) = result { return value } }
    try Task.checkCancellation()
    throw AggregateError(operations.flatMap { InnerOutcome(of: AnyOutputOperation($0)).failures.failures })
  }

  private func run<O: OutputOperation>(
    _ operations: [O],
    atMost count: Int,
    ordered isOrdered: Bool = false,
    staggered delay: Duration? = nil
  ) -> ResultRun<O, O.Output, Never> {
    let start = { (operation: O) in self.start(operation, adds: operation.isFree) }
    let discard = { (operation: O) in operation.cancelEvenIfUnused() }
    return ResultRun(operations, atMost: max(count, 1), ordered: isOrdered, staggered: delay, orElse: discard, start)
  }

  private func start<O: OutputOperation>(_ operation: O, adds: Bool = true) -> AnyOutputOperation<O.Output> {
    if adds { addWithDependencies(operation, for: currentWork) }
    return AnyOutputOperation(operation)
  }
}

/// The results of operations, one for each element of a sequence: see ``ElementResults``.
public typealias OperationResults<Source, Output: Sendable> = ElementResults<Source, Output, Never>

/// The results of operations, one for each element: see ``OperationContainer``.
///
/// Each result is a value or an error. The sequence throws only the error of an asynchronous sequence of elements. It can
/// be iterated once, by one task. Releasing it without iterating cancels operations that were passed to it.
public struct ElementResults<Source, Output: Sendable, Failure: Error>: AsyncSequence {
  /// An element, and the result of its operation.
  public typealias Element = (element: Source, result: Result<Output, any Error>)

  /// Reads the results. Releasing it cancels the operations whose results were not read.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let run: ResultRun<Source, Output, Failure>

    /// Waits for the next result. Returns nil when there is none left, or when the task is cancelled.
    public mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
      try await run.next()
    }
  }

  /// The run until the iteration begins. Releasing the iterator then cancels the operations.
  private let run: Locked<ResultRun<Source, Output, Failure>?>

  fileprivate init(_ run: ResultRun<Source, Output, Failure>) { self.run = Locked(run) }

  /// Begins the iteration. The operations are made by its first call of `next`, or later.
  public func makeAsyncIterator() -> AsyncIterator {
    guard let run = run.withLock({ $0.take() }) else {
      misuse("The results of operations can be iterated once. Keep them in an array, or run new operations.")
    }
    return AsyncIterator(run: run)
  }
}

/// The reports to the task that iterates. Not generic, because generic types are looked up when the program runs.
private struct ResultReports {
  /// An entry of the run for each result that has not been read, and its operation. Nil when the run is over.
  var started: NumberedList<(entry: AnyObject, operation: AsyncOperation)>? = NumberedList()
  /// The finished operations that are next, or wait for an earlier one.
  var finished = ArrayDeque<Int>()
  /// The index of the next result. Nil if the results are in the order in which the operations finish.
  var next: Int?
  /// The number of operations that may be unfinished or unread. Nil when there are no more elements.
  var limit: Int?
  /// The number of reports since the task last looked for a result.
  var newCount = 0
  var resume: Waiter?

  var hasRoom: Bool { limit ?? 0 > started?.count ?? .max }
  var isOver: Bool { limit == nil && (started?.count ?? 0) == 0 }

  /// One of these must finish before there is another result. None if another element may come before.
  var awaited: [AsyncOperation] {
    if hasRoom { return [] }
    let operations = started?.elements.map(\.operation) ?? []
    return next == nil ? operations : Array(operations.prefix(1))
  }
}

extension Locked<ResultReports> {
  fileprivate func report(_ change: (inout ResultReports) -> Void) {
    let resume = withLock { reports in
      change(&reports)
      reports.newCount += 1
      return reports.resume.take()
    }
    resume?()
  }

  nonisolated(nonsending) fileprivate func wait() async {
    await waitOrUnregister { resume in
      let isOver = withLock { reports in
        reports.resume = reports.newCount > 0 ? nil : resume
        return reports.resume == nil
      }
      if isOver { resume() }
      return nil
    }
  }
}

/// Used by the task that iterates, except that another task may read an asynchronous sequence.
private final class ResultRun<Source, Output: Sendable, Failure: Error>: @unchecked Sendable {
  private final class Entry {
    let element: Source
    let work: AnyOutputOperation<Output>

    init(_ element: Source, _ work: AnyOutputOperation<Output>) {
      self.element = element
      self.work = work
    }
  }

  /// Reads an element when there is room, or lets the other task read. Nil when the run is over.
  private var read: ((ResultRun) -> Void)?
  /// Called with the elements that were not started when the run is cancelled.
  private var discardRest: (() -> Void)?
  private var reader: Task<Void, Never>?
  /// Set by the other task before its last report.
  private var failure: Failure?
  /// Set if the starts are staggered.
  private var timer: ClockTimer?
  private let reports: Locked<ResultReports>

  private init(atMost limit: Int, ordered isOrdered: Bool) {
    if limit < 1 { misuse("At most \(limit) operations at once would never run. Allow 1 or more.") }
    reports = Locked(ResultReports(next: isOrdered ? 0 : nil, limit: limit))
  }

  convenience init<S: Sequence<Source>>(
    _ elements: S,
    atMost limit: Int,
    ordered isOrdered: Bool,
    staggered stagger: Duration? = nil,
    orElse discard: ((Source) -> Void)? = nil,
    _ start: @escaping (Source) -> AnyOutputOperation<Output>
  ) {
    self.init(atMost: limit, ordered: isOrdered)
    var iterator = elements.makeIterator()
    read = { run in
      while run.reports.withLock({ $0.hasRoom }) {
        guard let element = iterator.next() else { return run.reports.withLock { $0.limit = nil } }
        let work = start(element)
        run.add(element, work)
        if let stagger { run.awaitTurn(after: stagger, on: work.operation.clock) }
      }
    }
    if let discard { discardRest = { while let element = iterator.next() { discard(element) } } }
  }

  convenience init<S: AsyncSequence>(
    reading elements: sending S,
    atMost limit: Int,
    ordered isOrdered: Bool,
    _ start: @escaping @Sendable (Source) -> AnyOutputOperation<Output>
  ) where S.Element == Source, S.Failure == Failure {
    self.init(atMost: limit, ordered: isOrdered)
    let (requests, request) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    read = { _ in request.yield() }
    lazy var iterator = elements.makeAsyncIterator()
    let next = { () async throws(Failure) -> Source? in try await iterator.next(isolation: nil) }
    reader = Task { [weak self, reports] in
      do throws(Failure) {
        reading: for await _ in requests {
          while reports.withLock({ $0.hasRoom }) {
            guard let element = try await next() else { break reading }
            self?.add(element, start(element))
          }
        }
      } catch {
        self?.failure = error
      }
      reports.report { $0.limit = nil }
    }
  }

  deinit { cancel() }

  nonisolated(nonsending) func next() async throws(Failure) -> ElementResults<Source, Output, Failure>.Element? {
    while !Task.isCancelled {
      if let entry = takeFinished() { return (entry.element, entry.work.result) }
      read?(self)
      if reports.withLock({ $0.isOver }) {
        if let failure = failure.take() { throw failure }
        return nil
      }
      let wait = timer == nil ? beginWait() : nil
      await reports.wait()
      wait?.end()
    }
    cancel()
    return nil
  }

  private func beginWait() -> TaskWait? {
    TaskWait.begin(.oneOf { [reports] in reports.withLock { $0.awaited } }) { [reports] error in
      reports.withLock { $0.awaited.last }?.refuse(with: error)
    }
  }

  private func takeFinished() -> Entry? {
    let entry = reports.withLock { reports -> AnyObject? in
      reports.newCount = 0
      if let next = reports.next, reports.finished.first != next { return nil }
      reports.next? += 1
      return reports.finished.popFirst().flatMap { reports.started?.remove($0)?.entry }
    }
    guard let entry else { return nil }
    // A staggered run continues only if its caller does not accept this result.
    if timer == nil { read?(self) }
    return unsafe unsafeDowncast(entry, to: Entry.self)
  }

  private func add(_ element: Source, _ work: AnyOutputOperation<Output>) {
    let entry = Entry(element, work)
    guard let index = reports.withLock({ $0.started?.append((entry, work.operation)) }) else {
      return work.operation.cancel()
    }
    work.operation.whenFinished { [reports] in
      reports.report { if $0.next == nil { $0.finished.append(index) } else { $0.finished.insert(index) } }
    }
  }

  private func awaitTurn(after delay: Duration, on clock: any Clock<Duration>) {
    timer?.cancel()
    timer = ClockTimer()
    timer?.start(after: delay, on: clock) { [reports] in reports.report { $0.limit? += 1 } }
  }

  func cancel() {
    read = nil
    discardRest.take()?()
    reader?.cancel()
    timer?.cancel()
    let started = reports.withLock { reports in
      reports.limit = nil
      return reports.started.take()
    }
    for (_, operation) in started?.elements ?? [] { operation.cancel() }
  }
}
