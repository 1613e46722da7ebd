import Foundation

/// Whether an error only says that its work was cancelled.
///
/// The check compares domains and codes. `URLError` would link FoundationNetworking on Linux.
func meansCancelled(_ error: any Error) -> Bool {
  switch error {
  case is CancellationError: return true
  case is OperationError: return false
  case let error as AggregateError: return error.failures.allSatisfy { meansCancelled($0.error) }
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
