import Foundation
import Operations
import Testing

/// A line of a table of bad inputs: what is done, and what must come of it, in words.
struct HostileCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  private let expected: String
  private let body: @Sendable () async throws -> String

  /// - Parameter body: Does it, and returns what came of it; what it throws is put into words.
  init(_ name: String, gets expected: String, _ body: @escaping @Sendable () async throws -> String) {
    (testDescription, self.expected, self.body) = (name, expected, body)
  }

  func check() async {
    let outcome = await words(body)
    #expect(outcome == expected, "\(testDescription)")
  }
}

func words(_ body: () async throws -> String) async -> String {
  do { return try await body() } catch { return words(error) }
}

/// The code of one of the package's errors, or the description of another error.
func words(_ error: any Error) -> String {
  switch error {
  case is CancellationError: "cancelled"
  case let error as OperationError: error.code.description
  case let error as AggregateError: error.failures.map { words($0.error) }.joined(separator: " + ")
  default: "\(error)"
  }
}

/// Runs an operation in its own queue, and returns how it ended.
func ending(_ operation: AsyncOperation) async -> String {
  await words {
    try await OperationQueue().run(operation)
    return "success"
  }
}

extension Duration {
  /// The extremes, which no arithmetic can go beyond.
  static var longest: Self { Duration(attoseconds: .max) }
  static var shortest: Self { Duration(attoseconds: .min) }
}
