public import Foundation

/// An error and the path of the operation that failed with it.
public struct OperationFailure: LocalizedError, CustomStringConvertible {
  /// The names from the outermost group down to the failed operation, for example `["Import", "Download", "page 3"]`.
  ///
  /// An operation without a name is represented by the file and line of its closure, such as `Import.swift, line 24`, or
  /// by the name of its type, such as `Upload`, or `group operation` for a type of this package. The path is empty if the error belongs to no operation.
  public var path: [String] { names.map { sequence(first: $0, next: \.rest).map(\.name) } ?? [] }
  /// The error.
  public let error: any Error
  /// Whether the failure only reports the failure of another operation.
  ///
  /// That is an `.inputUnavailable` of an operation whose producer failed, or a `.conditionFailed` that reports another
  /// failure of the same group or ``AggregateError``.
  public fileprivate(set) var isConsequence: Bool
  /// Whether the error was reported in an `AggregateError`, whose paths must be kept.
  let isOfAggregate: Bool
  private let names: PathNames?

  /// Creates a failure from an error and the path of the failed operation, which may be empty.
  public init(path: [String], error: any Error) { self.init(nil, error: error, below: path) }

  /// The path begins with `outer`.
  private init(_ names: PathNames?, error: any Error, isOfAggregate: Bool = false, below outer: [String] = []) {
    self.names = outer.reversed().reduce(names) { PathNames($1, before: $0) }
    self.error = error
    self.isOfAggregate = isOfAggregate
    isConsequence = (error as? OperationError)?.isOfFailedProducer == true
  }

  /// Returns `errors` with the paths of `failures`, from which a group has derived them, in O(n). The path is that of
  /// the failure at the same index if the counts are equal, or else that of the next equal failure, if there is one.
  static func matching(_ errors: [any Error], with failures: [OperationFailure]) -> [OperationFailure] {
    if errors.count == failures.count {
      return zip(errors, failures).map { OperationFailure($1.names, error: $0) }
    }
    // In reverse, so that `popLast()` returns the first of equal failures.
    var places = Dictionary(grouping: failures.indices.reversed()) { signature(of: failures[$0].error) }
    var next = 0
    return errors.map { error in
      let signature = signature(of: error)
      while let index = places[signature]?.popLast() {
        if index < next { continue }
        next = index + 1
        return OperationFailure(failures[index].names, error: error)
      }
      return OperationFailure(path: [], error: error)
    }
  }

  var hasPath: Bool { names != nil }

  func below(_ name: String) -> OperationFailure {
    OperationFailure(names, error: error, isOfAggregate: isOfAggregate, below: [name])
  }

  fileprivate func inAggregate(of failure: OperationFailure) -> OperationFailure {
    OperationFailure(names, error: error, isOfAggregate: true, below: failure.path)
  }

  public var errorDescription: String? { description }

  public var description: String {
    guard let name = path.last else { return describe(error) }
    return path.joined(separator: " › ") + ": " + describe(error).trimmingPrefix("“\(name)” ")
  }
}

/// The names of a path. The paths of a failure in nested groups share them, because copies would take O(d²) for a depth d.
private final class PathNames: @unchecked Sendable {
  let name: String
  /// Changes only in `deinit`.
  private(set) var rest: PathNames?

  init(_ name: String, before rest: PathNames?) {
    self.name = name
    self.rest = rest
  }

  /// Without recursion, because groups can be nested to any depth.
  deinit {
    var next = rest.take()
    while var names = next.take() { if isKnownUniquelyReferenced(&names) { next = names.rest.take() } }
  }
}

extension [OperationFailure] {
  /// Returns the failures, with those marked that report others of the list, in O(n).
  func markingConsequences() -> Self {
    lazy var signatures = Set(map { signature(of: $0.error) })
    return map { failure in
      guard let error = failure.error as? OperationError, error.code == .conditionFailed else { return failure }
      var marked = failure
      marked.isConsequence =
        error.underlyingErrors.contains { OperationError.Code.inputUnavailable ~= $0 }
        || error.rootCauses.errors.contains { signatures.contains(signature(of: $0)) }
      return marked
    }
  }
}

extension OperationFailure {
  /// Whether a policy of a key has dropped or replaced the operation itself, which is no failure of its group.
  var isOfPolicy: Bool {
    path.isEmpty && (OperationError.Code.excluded ~= error || OperationError.Code.replaced ~= error)
  }
}

/// The errors that a lifecycle receives. They are inspected without the lock, because that can run the caller's code.
struct FailureReport: Sendable {
  /// The failures, with paths relative to the operation. The failures of an `AggregateError` take its place.
  private(set) var failures: [OperationFailure] = []
  /// The failures that count even if the operation was cancelled before they were reported.
  private(set) var failuresAfterCancellation: [OperationFailure] = []

  init(_ errors: [any Error]) { self.init(failures: errors.map { OperationFailure(path: [], error: $0) }) }

  init(failures: [OperationFailure]) { for failure in failures { append(failure) } }

  init(unlessCancelled error: any Error) { failures = [OperationFailure(path: [], error: error)] }

  private mutating func append(_ failure: OperationFailure) {
    if let aggregate = failure.error as? AggregateError, !aggregate.failures.isEmpty {
      for inner in aggregate.failures {
        append(inner.inAggregate(of: failure))
      }
    } else {
      failures.append(failure)
      if !meansCancelled(failure.error) { failuresAfterCancellation.append(failure) }
    }
  }
}

/// Compares domains and codes, because `URLError` would link FoundationNetworking on Linux.
func meansCancelled(_ error: any Error) -> Bool {
  switch error {
  case is CancellationError: return true
  case is OperationError: return false
  case let error as AggregateError:
    return !error.failures.isEmpty && error.failures.allSatisfy { meansCancelled($0.error) }
  default:
    let error = error as NSError
    switch error.code {
    case NSURLErrorCancelled: return error.domain == NSURLErrorDomain
    case CocoaError.userCancelled.rawValue: return error.domain == NSCocoaErrorDomain
    case Int(POSIXErrorCode.ECANCELED.rawValue): return error.domain == NSPOSIXErrorDomain
    default: return false
    }
  }
}
