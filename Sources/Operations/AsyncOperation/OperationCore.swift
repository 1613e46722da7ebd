/// Everything an ``AsyncOperation`` keeps under its one lock.
struct OperationCore {
  /// Through whom the operation runs. A second enqueueing is caught here, with a sentence, instead of in Foundation.
  enum Place {
    case none
    case queue
    case group
  }

  enum StartAction {
    case execute([OperationObserver])
    case skip
    case ignore
    case refuse
    /// Something is still waited for.
    case notReady
    /// A group starts its members; nobody else does.
    case isMember
  }

  var lifecycle = OperationLifecycle()
  var ledger = DependencyLedger()
  var observers: [OperationObserver] = []
  var waiters: [@Sendable () -> Void] = []
  var name: String?
  var place = Place.none
  var supervisor: (any OperationSupervisor)?
  /// The supervisor has not been told yet that the operation is ready.
  var owesReadiness = false
  /// The observers, the dependents and the waiters have been told of the end.
  var isSettled = false
  /// The closure of an operation made with one, here so that whoever comes first, execution or the end, takes it.
  var work: AnyObject?

  mutating func start(by starter: Starter) -> StartAction {
    if lifecycle.phase == .pending {
      if starter == .anyone, place == .group { return .isMember }
      if starter != .queue, !lifecycle.isCancelled, ledger.remaining > 0 {
        owesReadiness = supervisor != nil
        return .notReady
      }
    }
    switch lifecycle.start() {
    case .execute: return .execute(observers)
    case .skip: return .skip
    case .ignore: return .ignore
    case .refuse: return .refuse
    }
  }

  /// Who starts the operation, as far as it matters to whether it may.
  enum Starter {
    case anyone
    case queue
    case supervisor
  }

  mutating func takeWork<Closure>(_: Closure.Type) -> Closure? {
    defer { work = nil }
    return (work as? WorkBox<Closure>)?.closure
  }

  /// The supervisor to tell that the operation has become ready, if that has not been said yet.
  mutating func takeReadiness() -> (any OperationSupervisor)? {
    guard owesReadiness else { return nil }
    owesReadiness = false
    return supervisor
  }
}

/// A closure as an object, so that the core need not know its type.
final class WorkBox<Closure> {
  let closure: Closure

  init(_ closure: Closure) { self.closure = closure }
}
