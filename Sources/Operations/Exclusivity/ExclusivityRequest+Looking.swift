import Foundation

extension ExclusivityRequest {
  /// Somebody who stands before it in the line for a key.
  struct Predecessor {
    let key: ExclusivityKey
    let request: ExclusivityRequest?
    /// Otherwise it is first in that line, and waits for another key.
    let isHolding: Bool
  }

  /// Whom it waits for. Nobody if it holds its keys, or has not asked for them.
  var predecessors: [Predecessor] {
    domain.state.withLock { state in
      guard case .waiting(let ticket) = phase, let entry = state.table.entries[ticket] else { return [] }
      return entry.places.compactMap { place in
        guard let first = state.table.first(at: place), first != ticket, let other = state.table.entries[first] else {
          return nil
        }
        return Predecessor(key: place.key, request: other.claimant.request, isHolding: other.isGranted)
      }
    }
  }
}
