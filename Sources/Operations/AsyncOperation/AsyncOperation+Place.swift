import Foundation

extension AsyncOperation {
  /// Takes the operation for a queue or a group, or ends the program if it is not free.
  func claim(_ place: OperationCore.Place) {
    let obstacle = core.withLock { core -> String? in
      if core.lifecycle.phase != .pending { return "has been started" }
      switch core.place {
      case .none:
        core.place = place
        return nil
      case .queue: return "is in a queue"
      case .group: return "is in a group"
      }
    }
    if let obstacle { misuse(cannotBeAdded(because: obstacle)) }
  }

  /// Whether the operation is still to be put into a queue or a group, as far as the toolkit knows.
  var isFree: Bool { core.withLock { $0.place == .none && $0.lifecycle.phase == .pending } }
}

extension Operation {
  func cannotBeAdded(because obstacle: String) -> String {
    "“\(displayName)” \(obstacle) already and cannot be added. An operation runs once, in one place: make a new one."
  }
}
