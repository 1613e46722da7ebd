/// A claim to keys, for code that is no operation: see ``withKeys(_:in:waitLimit:name:clock:function:line:isolation:_:)``.
///
/// The claims have the meaning of the methods of ``AsyncOperation`` with the same names.
public struct ExclusivityClaim: Sendable {
  let claims: [KeyClaim]

  private init(_ claims: [KeyClaim]) {
    if let obstacle = claims.obstacle { misuse("A claim \(obstacle)") }
    self.claims = claims
  }

  /// Excludes all other holders of the keys.
  public static func exclusive(_ keys: ExclusivityKey...) -> Self { exclusive(keys) }

  /// Excludes all other holders of the keys in a list.
  public static func exclusive(_ keys: [ExclusivityKey]) -> Self { Self(keys.map { KeyClaim(key: $0, limit: 1) }) }

  /// Holds the key alongside other shared holders, but not alongside an exclusive one.
  public static func shared(_ key: ExclusivityKey) -> Self { Self([KeyClaim(key: key)]) }

  /// Lets holders whose weights add up to at most `limit` hold the key at once.
  ///
  /// - Precondition: The limit and the weight are 1 or greater, and the weight is at most the limit.
  public static func limited(_ key: ExclusivityKey, to limit: Int, weight: Int = 1) -> Self {
    Self([KeyClaim(key: key, limit: limit, weight: weight)])
  }

  /// Lets holders whose weights add up to at most `count` start under the key within any `interval`. Claims with
  /// different intervals are counted apart.
  ///
  /// - Precondition: The weight is 1 or greater and at most the count, and the interval is positive.
  public static func throttled(_ key: ExclusivityKey, to count: Int, per interval: Duration, weight: Int = 1) -> Self {
    Self([KeyClaim(key: key, throttles: [(count, interval, weight)])])
  }
}

extension [KeyClaim] {
  /// Creates the claims of one claimant, in a domain.
  init(_ claims: [ExclusivityClaim], in domain: ExclusivityDomain) {
    self = []
    for claim in claims { add(domain === ExclusivityDomain.shared ? claim.claims : claim.claims.map { $0.in(domain) }) }
  }

  /// Adds claims. A key that is claimed twice counts once, with the smaller limit, the larger weight and the strongest
  /// policy. So does an interval of a throttled key.
  mutating func add(_ new: [KeyClaim]) {
    if isEmpty, new.count <= 1 {
      self = new
      return
    }
    var index = Dictionary(uniqueKeysWithValues: zip(map(\.id), indices))
    for claim in new {
      guard let position = index[claim.id] else {
        index[claim.id] = count
        append(claim)
        continue
      }
      self[position].limit = Swift.min(self[position].limit, claim.limit)
      self[position].weight = Swift.max(self[position].weight, claim.weight)
      for (count, interval, weight) in claim.throttles { self[position].throttle(to: count, per: interval, weight) }
      let policies = [claim.policy, self[position].policy]
      self[position].policy = [.drop, .replace, .latest].first(where: policies.contains) ?? .wait
    }
  }

  /// The mistake that keeps a claimant from ever taking the keys, after the name of the claimant.
  var obstacle: String? { lazy.compactMap(\.obstacle).first }
}

extension KeyClaim {
  fileprivate mutating func throttle(to count: Int, per interval: Duration, _ weight: Int) {
    guard let index = throttles.firstIndex(where: { $0.interval == interval }) else {
      return throttles.append((count, interval, weight))
    }
    throttles[index].count = min(throttles[index].count, count)
    throttles[index].weight = max(throttles[index].weight, weight)
  }

  fileprivate var obstacle: String? {
    if limit < 1 { return "cannot be limited to \(limit) operations under \(quotedKey). Set a limit of 1 or more." }
    if let obstacle = obstacle(toWeight: weight, within: limit) { return obstacle }
    for throttle in throttles {
      if throttle.count < 1 {
        return "cannot be throttled to \(throttle.count) starts under \(quotedKey). Set a count of 1 or more."
      }
      if throttle.interval <= .zero {
        return
          "cannot be throttled under \(quotedKey) per \(throttle.interval.text). Set an interval that is longer than "
          + "zero."
      }
      if let obstacle = obstacle(toWeight: throttle.weight, within: throttle.count) { return obstacle }
    }
    return nil
  }

  private func obstacle(toWeight weight: Int, within limit: Int) -> String? {
    if weight < 1 { return "cannot weigh \(weight) under \(quotedKey). Set a weight of 1 or more." }
    if weight <= limit { return nil }
    return
      "weighs \(weight) under \(quotedKey), which admits \(limit), and could never run. Set a weight up to the limit."
  }

  private var quotedKey: String { "the key \(key.quoted)" }

  fileprivate var id: KeyUse.ID { KeyUse.ID(domain: domain, key: key) }

  fileprivate func `in`(_ domain: ExclusivityDomain) -> Self {
    var claim = self
    claim.domain = domain
    return claim
  }
}
