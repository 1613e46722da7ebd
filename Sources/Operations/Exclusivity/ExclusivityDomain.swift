/// A namespace of exclusivity keys. Operations exclude each other only if they name a key in the same domain.
///
/// Most programs need only ``shared``. A library or a test can create an independent domain.
///
/// A domain retains no operation. When a key is no longer in use, the domain releases all data about the key. A
/// throttled key is in use until the intervals after all starts have passed.
public final class ExclusivityDomain: @unchecked Sendable {
  /// The domain that keys belong to by default.
  public static let shared = ExclusivityDomain()

  let sharedRuns = Locked<[ExclusivityKey: any AnyObject & Sendable]>([:])

  /// The limits that ``setLimit(_:for:)`` has set. Guarded by the lock of the registry.
  private(set) var limits: [ExclusivityKey: Int] = [:]

  /// The time in milliseconds for which others wait behind an operation that has been called.
  let patience: Int

  /// Creates an independent domain.
  public convenience init() { self.init(patience: 20) }

  init(patience: Int) { self.patience = patience }

  /// Returns the names of the operations that hold the key, in the order of their requests. For debugging.
  ///
  /// A group that holds the key comes before its members that use the key.
  public func holders(of key: ExclusivityKey) -> [String] { names(of: key, areHolding: true) }

  /// Returns the names of the operations that wait for the key, in the order of their requests. For debugging.
  ///
  /// An operation still waits if it is ready but its queue has not started it.
  public func waiting(for key: ExclusivityKey) -> [String] { names(of: key, areHolding: false) }

  /// Limits the holders of a key from now on, whatever their claims, so that their weights add up to at most `limit`.
  ///
  /// The smallest limit counts, of this one and those of the claims. Operations that hold the key keep it. A claim that
  /// weighs more than the limit waits, so with a limit of 0 none begins to hold the key, apart from what holders run.
  ///
  /// - Parameters:
  ///   - limit: The limit, which is 0 or greater. Nil removes a limit that was set before.
  ///   - key: The key.
  public func setLimit(_ limit: Int?, for key: ExclusivityKey) {
    if let limit, limit < 0 {
      misuse(
        "The key \(key.quoted) cannot be limited to \(limit) operations. Set a limit of 0 or more, or nil for none."
      )
    }
    KeyRegistry.change { table, effects in
      if let index = limits.index(forKey: key) { effects.append(.release(limits.remove(at: index))) }
      limits[key] = limit
      table.limitDidChange(for: key, in: self, &effects)
    }
  }

  /// Lets no operation begin to hold a key for `duration`, for example after a response with the status 429.
  ///
  /// Operations that hold the key go on, and so does what they run inside. A retry that backs off has given the key back,
  /// and waits. If the key is paused already, the pause that ends later counts.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - duration: The length of the pause. Zero or less has no effect.
  ///   - clock: The clock that measures the pause.
  public func pause(_ key: ExclusivityKey, for duration: Duration, clock: any Clock<Duration> = ContinuousClock()) {
    KeyRegistry.pause(KeyUse.ID(domain: self, key: key), for: duration, on: clock)
  }

  private func names(of key: ExclusivityKey, areHolding: Bool) -> [String] {
    let claimants = KeyRegistry.withTable { $0.claimants(of: key, in: self, areHolding: areHolding) }
    return claimants.compactMap(\.name)
  }
}
