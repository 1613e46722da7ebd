import Foundation

/// The program was not called as it has to be.
struct UsageError: LocalizedError {
  let errorDescription: String?

  init(_ description: String) { errorDescription = description }
}
