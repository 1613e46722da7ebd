import Foundation
import Operations
import OperationsTestSupport

final class SoakLog: Sendable {
  enum Entry: Hashable, Sendable {
    case started(Int)
    /// Its work has been done, of a plain operation as well.
    case ran(Int)
    case attempted(Int, attempt: Int)
    case cancelled(Int)
    case finished(Int)
    /// A value was accepted as the operation's.
    case counted(Int)
    /// A newcomer has been added to its group.
    case added(Int)
  }

  private let journal = Journal<Entry>()
  /// What was seen to be wrong while it happened.
  private let found = Journal<String>()

  var entries: [Entry] { journal.entries }
  var violations: [String] { found.entries }

  func write(_ entry: Entry) { journal.write(entry) }

  func report(_ violation: String) { found.write(violation) }
}

/// Checks that the operations exclude each other under their keys, and that no group exceeds its limit.
final class SoakWatch: Sendable {
  private struct Holder {
    let index: Int
    let operation: Operation
    /// The groups around it that hold a key of it.
    var around: [Holder] = []
  }

  private let plan: SoakPlan
  private let log: SoakLog
  /// By item.
  private let holders = Locked<[Int: Holder]>([:])
  /// Members of groups whose limit stays what it is.
  private let slots = Locked<[Int: [Holder]]>([:])
  /// Groups whose limit is changed.
  private let changing: Set<Int>

  init(_ plan: SoakPlan, _ log: SoakLog) {
    self.plan = plan
    self.log = log
    changing = Set(plan.actions.compactMap { if case .limit(let index, _) = $0.deed { index } else { nil } })
  }

  func start(_ index: Int, _ operation: Operation, in group: GroupOperation) {
    let item = plan.items[index]
    guard let outer = item.outer else { return }
    // Once resumed, it is never suspended again.
    if group.isSuspended { log.report("\(index) began in the suspended \(outer)") }
    // A retry gives its slot back in its pauses, and a delay when it begins.
    if case .retry = item.kind { return }
    if case .delay = item.kind { return }
    let limit = plan.items[outer].limit
    if limit < 0 || changing.contains(outer) { return }
    let others = slots.withLock { slots in
      defer { slots[outer, default: []].append(Holder(index: index, operation: operation)) }
      return slots[outer, default: []]
    }
    // In this order, as with the keys.
    let executing = others.filter { !$0.operation.isFinished }
    if executing.count >= limit, !operation.isFinished {
      log.report("\(index) began in \(outer), whose \(limit) slots had \(executing.map(\.index))")
    }
  }

  func enter(_ index: Int, _ operation: Operation) {
    let item = plan.items[index]
    if item.keys.isEmpty { return }
    let outer = plan.outer(of: index)
    let others = holders.withLock { holders in
      let others = holders.values.filter { item.sharesKey(with: plan.items[$0.index]) }
      let around = others.filter { outer.contains($0.index) }
      holders[index] = Holder(index: index, operation: operation, around: around)
      return others
    }
    for other in others where item.excludes(plan.items[other.index]) {
      if outer.contains(other.index) || plan.outer(of: other.index).contains(index) { continue }
      // In this order: then both were executing when the first was checked. A group that has timed out releases its
      // keys while its members drain.
      let isDraining = other.around.contains { $0.operation.isFinished && item.sharesKey(with: plan.items[$0.index]) }
      let isHolding = !other.operation.isFinished && holders.withLock { $0[other.index] != nil }
      if isHolding, !isDraining, !operation.isFinished {
        log.report("\(index) and \(other.index) executed at once, both under \(item.keys) of domain \(item.domain)")
      }
    }
  }

  /// The work of an item is about to end. Its holder is released after the lock.
  func leave(_ index: Int) { _ = holders.withLock { $0.removeValue(forKey: index) } }
}
