import Foundation

extension AsyncOperation {
  /// Lets the operation execute only while no other operation holds one of these keys.
  ///
  /// ```swift
  /// queue.addOperation(alert.exclusive("alert"))
  /// queue.addOperation(transfer.exclusive("account 1", "account 2"))
  /// ```
  ///
  /// The operation acquires its keys when everything it waits for has finished and its queue or group can run it. While
  /// it waits it uses no thread and no slot. It holds the keys until it has finished, in whatever way. Several calls add
  /// up: all keys are acquired together or none is held, in several domains as well. A key that is named twice counts
  /// once, with the smallest limit.
  ///
  /// An operation that is added as a Foundation `Operation`, by its static type, requests its keys when it is started,
  /// and holds its slot meanwhile.
  ///
  /// - Parameters:
  ///   - keys: What the operation holds. Without any nothing changes.
  ///   - policy: What happens if one of these keys is held, or waited for, when the operation requests it.
  ///   - domain: Where the keys mean something.
  /// - Precondition: The operation has not been added to a queue or a group, and not been started.
  /// - Important: A running operation must not wait for an operation that needs a key it holds, other than a member of
  ///   its own; see <doc:MutualExclusion>.
  @discardableResult
  public final func exclusive(
    _ keys: ExclusivityKey...,
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    exclusive(keys, policy: policy, in: domain)
  }

  /// The same for keys that are only known when the program runs.
  @discardableResult
  public final func exclusive(
    _ keys: [ExclusivityKey],
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    request(keys.map { KeyRequest.Claim(domain: domain, key: $0, limit: 1, policy: policy) })
  }

  /// Lets the operation execute beside others that share the key, but not beside one that holds it exclusively.
  ///
  /// ```swift
  /// queue.addOperation(read.shared("database"))  // beside other reads
  /// queue.addOperation(write.exclusive("database"))  // alone
  /// ```
  ///
  /// An operation that waits for the key exclusively is not passed by later ones that share it.
  @discardableResult
  public final func shared(_ key: ExclusivityKey, in domain: ExclusivityDomain = .shared) -> Self {
    request([KeyRequest.Claim(domain: domain, key: key)])
  }

  /// Lets the operation execute only while no more than `limit` operations hold the key, itself included, in all queues
  /// and groups.
  ///
  /// ```swift
  /// for url in urls { queue.addOperation(Download(url).limited("host \(url.host()!)", to: 4)) }
  /// ```
  ///
  /// Among operations with different limits the smallest counts.
  ///
  /// - Precondition: The limit is 1 or greater.
  @discardableResult
  public final func limited(_ key: ExclusivityKey, to limit: Int, in domain: ExclusivityDomain = .shared) -> Self {
    if limit < 1 {
      misuse(
        "\(quotedName) cannot be limited to \(limit) operations under the key \(key.quoted). Set a limit of 1 or more."
      )
    }
    return request([KeyRequest.Claim(domain: domain, key: key, limit: limit)])
  }

  /// Lets at most `count` operations that are throttled under the key begin within any `interval`.
  ///
  /// ```swift
  /// queue.addOperation(call.throttled("api", to: 10, per: .seconds(1)))
  /// ```
  ///
  /// The interval is half open: a beginning at time t counts until t + `interval`, exclusively. It is measured on the
  /// operation's ``clock``. An operation begins when it acquires its keys, before its conditions are evaluated. As a
  /// holder it shares the key.
  ///
  /// - Precondition: The count is 1 or greater, and the interval is positive.
  @discardableResult
  public final func throttled(
    _ key: ExclusivityKey,
    to count: Int,
    per interval: Duration,
    in domain: ExclusivityDomain = .shared
  ) -> Self {
    if count < 1 {
      misuse(
        "\(quotedName) cannot be throttled to \(count) starts under the key \(key.quoted). Set a count of 1 or more."
      )
    }
    if interval <= .zero {
      misuse(
        "\(quotedName) cannot be throttled under the key \(key.quoted) per \(interval). Set an interval that is longer than zero."
      )
    }
    let throttle = KeyThrottle(count: count, interval: interval)
    return request([KeyRequest.Claim(domain: domain, key: key, throttles: [throttle])])
  }

  private func request(_ claims: [KeyRequest.Claim]) -> Self {
    if claims.isEmpty { return self }
    let new = KeyRequest(of: self)
    let obstacle = core.withLock { core -> String? in
      guard core.lifecycle.phase == .pending else { return "has been started already" }
      guard case .none = core.place else { return "has been added to a queue or a group already" }
      let extras = core.makeExtras()
      let request = extras.permit as? KeyRequest ?? new
      extras.permit = request
      for claim in claims { request.add(claim) }
      return nil
    }
    if let obstacle {
      misuse(
        "\(quotedName) \(obstacle) and cannot be given the key \(claims[0].key.quoted). Add the keys before, or make a new one."
      )
    }
    return self
  }
}
