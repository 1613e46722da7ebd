import Foundation

/// Why a file or a folder could not be read. Which one it was is the name of the operation that failed.
struct Unreadable: LocalizedError {
  let reason: String

  init(_ reason: String) { self.reason = reason }

  /// What the system says to the call that has just failed.
  static var bySystem: Unreadable { Unreadable(systemError: errno) }

  /// What the system said, where Foundation has heard it.
  init(_ error: any Error) {
    if let cause = (error as? CocoaError)?.underlying as? POSIXError {
      self.init(systemError: cause.code.rawValue)
    } else {
      self.init(error.localizedDescription)
    }
  }

  private init(systemError: Int32) { self.init(unsafe String(cString: strerror(systemError))) }

  var errorDescription: String? { reason }
}
