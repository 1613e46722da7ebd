/// The leaves of a tree of underlying errors. Two failed dependencies double it at each level, so the visited errors are limited.
struct RootCauses: Sendable {
  /// The largest number of errors kept. Equal errors count once.
  private static let limit = 8
  private static let steps = 256
  /// The largest tree of underlying errors that an error of this package contains.
  private static let largestTree = 64

  private(set) var errors: [any Error] = []
  /// A lower bound of the number of errors in the tree.
  private var size = 0
  /// Whether ``errors`` contains all leaves.
  private(set) var isComplete = true

  init(of causes: [any Error]) {
    var rest = causes[...]
    for _ in 0..<RootCauses.steps {
      guard let error = rest.popFirst() else { return }
      size += 1
      switch error {
      case let error as OperationError where !error.underlyingErrors.isEmpty: add(error.rootCauses)
      case let error as AggregateError where !error.failures.isEmpty:
        rest.insert(contentsOf: error.failures.prefix(RootCauses.steps).map(\.error), at: rest.startIndex)
      case let error as OperationFailure: rest.insert(error.error, at: rest.startIndex)
      default: add(error)
      }
    }
    if !rest.isEmpty { isComplete = false }
  }

  private mutating func add(_ roots: RootCauses) {
    size += roots.size
    if !roots.isComplete { isComplete = false }
    for root in roots.errors { add(root) }
  }

  private mutating func add(_ root: any Error) {
    let newSignature = signature(of: root)
    if errors.contains(where: { signature(of: $0) == newSignature }) { return }
    if errors.count < RootCauses.limit { errors.append(root) } else { isComplete = false }
  }

  /// Returns only the leaves if the tree of `causes`, from which this value was created, is too large.
  func bounded(_ causes: [any Error]) -> [any Error] { size > RootCauses.largestTree ? errors : causes }

  func description(where isWanted: (String) -> Bool = { _ in true }) -> String {
    let texts = errors.filter { !($0 is CancellationError) }.map(describe).filter(isWanted)
    return texts.joined(separator: "; ") + (isComplete || texts.isEmpty ? "" : "; and others")
  }
}

/// Returns the identity of the type and the text of an error, for comparing errors, in microseconds.
func signature(of error: any Error) -> String { "\(ObjectIdentifier(type(of: error))) \(String(reflecting: error))" }
