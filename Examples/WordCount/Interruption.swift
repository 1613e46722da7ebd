import Foundation

/// Ctrl-C.
struct Interruption: LocalizedError {
  var errorDescription: String? { "interrupted" }
}
