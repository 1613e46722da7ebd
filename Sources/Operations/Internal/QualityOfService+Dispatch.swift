import Foundation

extension QualityOfService {
  /// The same quality of service in Dispatch's terms.
  var dispatchQoS: DispatchQoS {
    switch self {
    case .userInteractive: .userInteractive
    case .userInitiated: .userInitiated
    case .utility: .utility
    case .background: .background
    case .default: .default
    @unknown default: .default
    }
  }
}

extension DispatchQueue {
  static func global(quality: QualityOfService) -> DispatchQueue { .global(qos: quality.dispatchQoS.qosClass) }
}
