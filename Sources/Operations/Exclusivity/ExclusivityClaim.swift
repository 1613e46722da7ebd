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
    Self([KeyClaim(key: key), KeyClaim(key: key, limit: count, weight: weight, interval: interval)])
  }
}

extension AsyncOperation {
  /// Makes the operation exclude all other holders of these keys.
  ///
  /// ```swift
  /// queue.addOperation(alert.exclusive("alert"))
  /// queue.addOperation(transfer.exclusive("account 1", "account 2"))
  /// ```
  ///
  /// The operation arrives at the wait queues of its keys when all of its dependencies have finished and its group has
  /// started. While it waits, it uses no thread and no slot. A member takes a slot of its group and its keys in one
  /// step. An operation of an `OperationQueue` takes its keys when the queue starts it. It releases the keys when it
  /// finishes, even if it was cancelled or timed out.
  ///
  /// Calls accumulate. The operation takes all of its keys together, across all domains. A key named twice counts once,
  /// with the smaller limit and the larger weight.
  ///
  /// An operation that is added through its static type `Operation` requests its keys only when it is started, and
  /// occupies its slot while it waits.
  ///
  /// - Parameters:
  ///   - keys: The keys. An empty list changes nothing.
  ///   - policy: The effect if one of these keys is held or waited for when the operation arrives.
  ///   - domain: The domain of the keys.
  /// - Precondition: The operation has not been added to a queue or a group, and has not been started.
  /// - Important: A running operation must never wait for an operation that needs a key it holds, except for its own
  ///   members. See <doc:MutualExclusion>.
  @discardableResult
  public final func exclusive(
    _ keys: ExclusivityKey...,
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    exclusive(keys, policy: policy, in: domain)
  }

  /// Makes the operation exclude all other holders of the keys in a list.
  @discardableResult
  public final func exclusive(
    _ keys: [ExclusivityKey],
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    addClaims(keys.map { KeyClaim(domain: domain, key: $0, limit: 1, policy: policy) })
  }

  /// Lets the operation execute alongside other operations that share the key, but not alongside an exclusive holder.
  ///
  /// ```swift
  /// queue.addOperation(read.shared("database"))  // alongside other reads
  /// queue.addOperation(write.exclusive("database"))  // alone
  /// ```
  ///
  /// Operations that share the key do not overtake an exclusive operation that waits for it.
  @discardableResult
  public final func shared(_ key: ExclusivityKey, in domain: ExclusivityDomain = .shared) -> Self {
    addClaims([KeyClaim(domain: domain, key: key)])
  }

  /// Lets holders whose weights add up to at most `limit` hold the key at once, in all queues and groups.
  ///
  /// ```swift
  /// for url in urls { queue.addOperation(Download(url).limited("host \(url.host()!)", to: 4)) }
  /// queue.addOperation(render.limited("memory", to: 8, weight: 3))  // beside others that weigh at most 5
  /// ```
  ///
  /// If the holders have different limits, the smallest limit applies. A heavy operation is not overtaken by light ones.
  ///
  /// - Precondition: The limit and the weight are 1 or greater, and the weight is at most the limit.
  @discardableResult
  public final func limited(
    _ key: ExclusivityKey,
    to limit: Int,
    weight: Int = 1,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    addClaims([KeyClaim(domain: domain, key: key, limit: limit, weight: weight)])
  }

  /// Lets operations whose weights add up to at most `count` start under the key within any `interval`.
  ///
  /// ```swift
  /// queue.addOperation(call.throttled("api", to: 10, per: .seconds(1)))
  /// queue.addOperation(prompt.throttled("tokens", to: 90_000, per: .seconds(60), weight: 1_200))
  /// ```
  ///
  /// The interval is half open: a start at time t leaves the window at t + `interval`. Time is measured on the
  /// operation's ``clock``. An operation starts when it takes its keys, before its conditions are evaluated.
  /// Operations that are only throttled share the key. Claims with different intervals are counted apart. A heavy
  /// operation is not overtaken by light ones.
  ///
  /// - Precondition: The weight is 1 or greater and at most the count, and the interval is positive.
  @discardableResult
  public final func throttled(
    _ key: ExclusivityKey,
    to count: Int,
    per interval: Duration,
    weight: Int = 1,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    let throttle = KeyClaim(domain: domain, key: key, limit: count, weight: weight, interval: interval)
    return addClaims([KeyClaim(domain: domain, key: key), throttle])
  }

  @discardableResult
  final func addClaims(_ claims: [KeyClaim], lends: Bool = false) -> Self {
    if claims.isEmpty { return self }
    let new = KeyRequest(of: self, lends: lends)
    let obstacle = core.withLock { core -> String? in
      guard core.lifecycle.phase.isPending, case .none = core.place else {
        let event = core.lifecycle.phase.isPending ? "been added to a queue or a group" : "been started"
        return
          "has \(event) already and cannot be given the key \(claims[0].key.quoted). Add the keys before, or make a new "
          + "one."
      }
      let request = core.keys ?? new
      core.work = request
      request.claims.add(claims)
      return request.claims.obstacle
    }
    if let obstacle { misuse("\(quotedName) \(obstacle)") }
    return self
  }
}

extension [KeyClaim] {
  init(_ claims: [ExclusivityClaim], in domain: ExclusivityDomain) {
    self = []
    for claim in claims { add(claim.claims) }
    // Changing the claims of a single list would copy them.
    if domain === ExclusivityDomain.shared { return }
    for index in indices { self[index].domain = domain }
  }

  /// Adds claims. A key or an interval that is claimed twice counts once, with the strongest limit, weight and policy.
  mutating func add(_ new: [KeyClaim]) {
    if isEmpty, new.count <= 1 {
      self = new
      return
    }
    // Compares one new claim with all others, because a dictionary would be made for each call.
    var index = new.count == 1 ? [:] : Dictionary(uniqueKeysWithValues: zip(map(\.id), indices))
    for claim in new {
      guard let position = index[claim.id] ?? (new.count == 1 ? firstIndex { $0.id == claim.id } : nil) else {
        index[claim.id] = count
        append(claim)
        continue
      }
      self[position].limit = Swift.min(self[position].limit, claim.limit)
      self[position].weight = Swift.max(self[position].weight, claim.weight)
      let policies = [claim.policy, self[position].policy]
      self[position].policy = [.drop, .replace, .latest].first(where: policies.contains) ?? .wait
    }
  }

  /// The mistake that keeps a claimant from ever taking the keys, after the name of the claimant.
  var obstacle: String? { first { $0.obstacle != nil }?.obstacle }
}

extension KeyClaim {
  fileprivate var obstacle: String? {
    if limit < 1 {
      return interval == nil
        ? "cannot be limited to \(limit) operations under \(quotedKey). Set a limit of 1 or more."
        : "cannot be throttled to \(limit) starts under \(quotedKey). Set a count of 1 or more."
    }
    if let interval, interval <= .zero {
      return "cannot be throttled under \(quotedKey) per \(interval.text). Set an interval that is longer than zero."
    }
    if weight < 1 { return "cannot weigh \(weight) under \(quotedKey). Set a weight of 1 or more." }
    if weight <= limit { return nil }
    return
      "weighs \(weight) under \(quotedKey), which admits \(limit), and could never run. Set a weight up to the limit."
  }

  private var quotedKey: String { "the key \(key.quoted)" }

  /// The use in the whole program.
  var id: KeyUse.ID { KeyUse.ID(domain: domain, key: key, interval: interval) }
}
