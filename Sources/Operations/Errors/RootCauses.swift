import Foundation

/// The errors at the bottom of others' causes.
///
/// Causes are a tree, and operations that fail because others failed make it grow with each of them: a few levels of
/// pairs are thousands of branches. So there is a bound to what is kept, and to what is looked at to find it.
struct RootCauses: Sendable {
  /// How many are kept; those that look the same count once.
  private static let limit = 8
  /// How many errors are looked at.
  private static let steps = 256
  /// How large a tree of causes an error of the package may hold.
  private static let largestTree = 64

  private(set) var errors: [any Error] = []
  /// How many errors the tree consists of, at least.
  private var size = 0
  private(set) var isComplete = true

  init(of causes: [any Error]) {
    var rest = causes[...]
    var steps = 0
    while let error = rest.popFirst() {
      steps += 1
      if steps > RootCauses.steps || errors.count > RootCauses.limit {
        isComplete = false
        return
      }
      size += 1
      switch error {
      case let error as OperationError where !error.underlyingErrors.isEmpty: add(error.rootCauses)
      case let error as AggregateError:
        rest.insert(contentsOf: error.failures.prefix(RootCauses.steps).map(\.error), at: rest.startIndex)
      case let error as OperationFailure: rest.insert(error.error, at: rest.startIndex)
      default: add(error)
      }
    }
  }

  private mutating func add(_ roots: RootCauses) {
    size += roots.size
    if !roots.isComplete { isComplete = false }
    for root in roots.errors { add(root) }
  }

  private mutating func add(_ root: any Error) {
    if errors.contains(where: { seemsSame($0, root) }) { return }
    if errors.count < RootCauses.limit { errors.append(root) } else { isComplete = false }
  }

  /// What an error is to hold of `causes`, whose roots these are: them, or, if they are too many by now, the roots.
  func bounded(_ causes: [any Error]) -> [any Error] { size > RootCauses.largestTree ? errors : causes }

  /// The roots in words, without those that are only cancellations.
  func description(where isWanted: (String) -> Bool = { _ in true }) -> String {
    let texts = errors.filter { !($0 is CancellationError) }.map(describe).filter(isWanted)
    return texts.joined(separator: "; ") + (isComplete || texts.isEmpty ? "" : "; and others")
  }
}
