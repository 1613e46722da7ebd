/// Throttled keys: the windows in which operations have begun.
extension KeyTable {
  /// Whether the windows of its throttled keys have room. If not, the caller has to say when they have.
  func isOpen(_ ticket: Ticket, _ effects: inout Effects) -> Bool {
    guard !ignoresThrottles, let entry = entries[ticket] else { return true }
    for claim in entry.claims {
      for throttle in claim.throttles {
        guard let line = lines[claim.line], let blocker = logs[line.place.outermost]?.blocker(for: throttle) else {
          continue
        }
        let window = Window(line: claim.line, throttle: throttle)
        if blocker.serial <= entry.verified[window] ?? -1 { continue }
        effects.delayed.append(Delay(ticket: ticket, claimant: entry.claimant, window: window, start: blocker))
        return false
      }
    }
    return true
  }

  /// The start that a delay was about has left the window.
  mutating func verify(_ delay: Delay, _ effects: inout Effects) {
    guard let entry = entries[delay.ticket], entry.state == .waiting else { return }
    entries[delay.ticket]?.verified[delay.window] = delay.start.serial
    serve(entry.claims, &effects)
  }

  mutating func noteStart(of ticket: Ticket) {
    guard !ignoresThrottles, let entry = entries[ticket], entry.startSerial == nil else { return }
    var start: StartLog.Start?
    for claim in entry.claims where !claim.throttles.isEmpty {
      guard let place = lines[claim.line]?.place.outermost else { continue }
      let new = start ?? StartLog.Start(serial: nextSerial, time: StartTime())
      start = new
      var largest = claim.throttles[0]
      for throttle in claim.throttles.dropFirst() {
        largest = KeyThrottle(
          count: max(largest.count, throttle.count),
          interval: max(largest.interval, throttle.interval)
        )
      }
      logs[place, default: StartLog()].append(new, for: largest)
    }
    if start != nil {
      entries[ticket]?.startSerial = nextSerial
      nextSerial += 1
    }
  }

  /// When the entry began, if it is throttled: to be noted by the one that begins.
  func startTime(of ticket: Ticket) -> StartTime? {
    guard let entry = entries[ticket], let serial = entry.startSerial else { return nil }
    for claim in entry.claims where !claim.throttles.isEmpty {
      guard let place = lines[claim.line]?.place.outermost else { continue }
      if let start = logs[place]?.starts.last(where: { $0.serial == serial }) { return start.time }
    }
    return nil
  }

  mutating func forgetStart(of entry: Entry) {
    guard let serial = entry.startSerial else { return }
    for claim in entry.claims where !claim.throttles.isEmpty {
      if let place = lines[claim.line]?.place.outermost { logs[place]?.remove(serial) }
    }
  }

  /// Forgets when operations began under keys that are not in use.
  ///
  /// - Returns: What has been forgotten, to be released when the lock is.
  mutating func forget(_ places: [Place: Int]) -> [StartLog] {
    places.compactMap { place, serial in
      guard lineIndices[place] == nil, logs[place]?.starts.last?.serial ?? serial == serial else { return nil }
      return logs.removeValue(forKey: place)
    }
  }
}
