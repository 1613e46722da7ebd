import Foundation
import Operations

/// Simulates a load, which fails while there is no network.
final class LoadOperation: AsyncOperation, @unchecked Sendable {
  let subject: String
  private let isNetworkUp: Bool

  init(_ subject: String, isNetworkUp: Bool) {
    self.subject = subject
    self.isNetworkUp = isNetworkUp
    super.init()
    named(subject)
  }

  override func execute() {
    if isNetworkUp { finish() } else { finish(with: POSIXError(.ENETDOWN)) }
  }
}
