import Foundation

/// What Foundation knows of an operation's readiness, as a value. Foundation gets one dependency, the *gate*, which
/// opens when no dependency is unfinished. A check of readiness makes it. On Linux, Foundation's own dependencies cost
/// quadratic time, and point to released memory.
///
/// Foundation checks `isReady` and records the answer in two steps, on any thread. It may therefore record an outdated
/// answer, and never run the operation. A *nudge* makes it check again.
struct FoundationBridge {
  /// The answers that Foundation may have recorded, or may still record.
  enum Record {
    case unread
    case ready
    /// As ``waiting``, but a nudge is due that corrects the record.
    case corrected
    /// That the operation must wait. A nudge does not end this state, because an answer may be recorded after it.
    case waiting
    /// As ``waiting``, and the caller that reports the last gate open must nudge Foundation.
    case outdated
  }

  enum Readiness {
    /// Nothing is waited for, so Foundation decides.
    case leftToFoundation
    /// As ``leftToFoundation``, but the caller must nudge Foundation, which may have recorded the opposite.
    case overlooked
    /// The caller must add the new gate, if there is one, to Foundation.
    case waiting(newGate: Operation?)
  }

  private(set) var gate: Operation?
  /// Gates that callers are opening and have not reported open.
  private(set) var openingGates: Int32 = 0
  private(set) var record = Record.unread
  /// Called when the gates are open. Each resumes a thread that starts the operation by hand.
  var waiters: [Waiter] = []

  var isOpening: Bool { openingGates > 0 }

  /// Returns a new gate, unless there is one. The operation must wait, and the caller must add the gate to Foundation.
  mutating func makeGate() -> Operation? {
    if gate != nil { return nil }
    gate = Operation()
    if record != .outdated { record = .waiting }
    return gate
  }

  /// As ``makeGate()``, if Foundation may have recorded that the operation is ready.
  mutating func makeGateIfRead() -> Operation? { record == .unread ? nil : makeGate() }

  /// Returns the gate, which the caller must open and report open.
  mutating func takeGate() -> Operation? {
    if gate != nil { openingGates += 1 }
    return gate.take()
  }

  /// Returns whether the caller must nudge Foundation.
  mutating func gateDidOpen(isWaiting: Bool) -> Bool {
    openingGates -= 1
    // Foundation may record the answers of several opening threads in any order.
    if isOpening { record = .outdated }
    guard record == .outdated, !isWaiting, !isOpening else { return false }
    record = .waiting
    return true
  }

  /// Answers a check by Foundation or any other caller. If nothing is waited for any more, but an earlier answer was to
  /// wait, there are three cases:
  ///
  ///     A: open gate ─▶ check ─▶ record ready
  ///
  /// 1. The check is a part of opening the gate on this thread. Foundation records the answer, and runs the operation.
  ///
  ///     A: open gate ─▶ check ──────────▶ record ready ─▶ report the gate open ─▶ nudge
  ///     B:                    check ─▶ record ready
  ///
  /// 2. Another thread is opening the gate. Either may record its answer last, so that thread nudges in the end.
  ///
  ///     A: check (wait) ─────────────────────────────────▶ record wait
  ///     B:               open gate ─▶ check ─▶ record ready              check ─▶ nudge
  ///
  /// 3. The gate is open. An older answer may have been recorded last, so the caller nudges. The check of a nudge itself is
  ///    no reason for another one, and may be answered before an older answer is recorded.
  mutating func check(isWaiting: Bool, isOpener: @autoclosure () -> Bool, isNudge: @autoclosure () -> Bool) -> Readiness
  {
    if isWaiting { return .waiting(newGate: makeGate()) }
    switch record {
    case .unread: record = .ready
    case .ready, .corrected: break
    case .waiting, .outdated:
      if isOpener() { break }
      if isOpening {
        record = .outdated
      } else if !isNudge() {
        record = .corrected
        return .overlooked
      }
    }
    return .leftToFoundation
  }

  /// Returns whether the caller must nudge Foundation after it has checked readiness. If the gate opens between the
  /// check and the record, Foundation corrects the record later, but does not run the operation.
  mutating func recheck(isWaiting: Bool, isCancelled: Bool) -> Bool {
    if record == .unread || record == .ready { return false }
    if isCancelled { return true }
    if isOpening, !isWaiting { record = .outdated }
    return !isWaiting && !isOpening
  }

  /// Returns the gate, which the caller releases after releasing the lock.
  mutating func close() -> Operation? { gate.take() }
}
