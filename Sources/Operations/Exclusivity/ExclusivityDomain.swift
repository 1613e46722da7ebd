import Foundation

/// Where keys mean something: operations exclude each other if they name a key in the same domain.
///
/// ``shared`` is enough for most programs. A library, or a test, makes one of its own, and is not in anybody's way.
///
/// A domain holds no operation, and nothing at all for a key that nobody uses.
public final class ExclusivityDomain: Sendable {
  /// The domain of operations that name none.
  public static let shared = ExclusivityDomain()

  typealias Table = ExclusivityTable<WeakRequest>

  struct State {
    var table = Table()
    /// The runs that callers share, by their keys.
    var sharedRuns: [ExclusivityKey: any AnyObject & Sendable] = [:]

    fileprivate func first(at place: Table.Place) -> (Table.Ticket, Table.Entry, ExclusivityRequest?)? {
      guard let ticket = table.first(at: place), let entry = table.entries[ticket] else { return nil }
      return (ticket, entry, entry.claimant.request)
    }
  }

  struct WeakRequest {
    weak var request: ExclusivityRequest?
  }

  let state = Locked(State())

  /// A domain of its own: a key in it has nothing to do with the same key in another.
  public init() {}

  /// The name of the operation that holds the key, or nil if nobody does: for debugging.
  ///
  /// If what runs inside that operation holds it, too, it is still the outer one that is named.
  public func holder(of key: ExclusivityKey) -> String? {
    releaseFinished([key])
    return claimants(of: key).holders.lazy.compactMap(\.operation).first { !$0.isFinished }?.displayName
  }

  /// The names of the operations that wait for the key, in the order in which they asked: for debugging.
  public func waiting(for key: ExclusivityKey) -> [String] {
    releaseFinished([key])
    return claimants(of: key).waiting.compactMap(\.operation).filter { !$0.isFinished }.map(\.displayName)
  }

  private func claimants(of key: ExclusivityKey) -> (holders: [ExclusivityRequest], waiting: [ExclusivityRequest]) {
    state.withLock { state in
      let (holders, waiting) = state.table.claimants(of: key)
      return (holders.compactMap(\.request), waiting.compactMap(\.request))
    }
  }

  /// Lets those go who have finished and have not been able to say so yet.
  ///
  /// A plain Foundation operation is heard of on another thread, and others when their observers have been told: but
  /// whoever has seen that the holder has finished finds its key free.
  func releaseFinished(_ keys: [ExclusivityKey]) {
    var lines = keys.map { Table.Place(key: $0) }
    var lingering: Set<Table.Ticket> = []
    while let line = lines.popLast() {
      guard let (ticket, entry, request) = state.withLock({ $0.first(at: line) }) else { continue }
      if request?.operation?.isFinished == true {
        request?.leave()
        // It may not leave before those inside it have.
        guard lingering.insert(ticket).inserted else { continue }
        lines.append(line)
        lines += entry.places.map { Table.Place(key: $0.key, holder: ticket) }
      } else if entry.isGranted {
        lines.append(Table.Place(key: line.key, holder: ticket))
      }
    }
  }
}
