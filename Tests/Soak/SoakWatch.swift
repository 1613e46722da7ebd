import Foundation
import Operations

/// Sees who executes under which key.
final class SoakWatch: Sendable {
  private struct Key: Hashable {
    let name: String
    let domain: Int
  }

  private struct Holder {
    let index: Int
    let operation: Operation
    /// The groups around it that hold the same key.
    var around: [Operation] = []
  }

  private let plan: SoakPlan
  private let log: SoakLog
  private let holders = Locked<[Key: [Holder]]>([:])
  /// Members of groups whose limit stays what it is.
  private let slots = Locked<[Int: [Holder]]>([:])
  /// Groups whose limit is changed.
  private let changing: Set<Int>

  init(_ plan: SoakPlan, _ log: SoakLog) {
    self.plan = plan
    self.log = log
    changing = Set(plan.actions.compactMap { if case .limit(let index, _) = $0.deed { index } else { nil } })
  }

  /// A member of a group has started.
  func start(_ index: Int, _ operation: Operation, in group: GroupOperation) {
    guard let outer = plan.items[index].outer else { return }
    // Once it has been resumed nobody suspends it again.
    if group.isSuspended { log.report("\(index) began in the suspended \(outer)") }
    // A retry gives its slot back in its pauses.
    if case .retry = plan.items[index].kind { return }
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

  /// The work of an item begins.
  func enter(_ index: Int, _ operation: Operation) {
    let item = plan.items[index]
    if item.keys.isEmpty { return }
    let outer = plan.outer(of: index)
    let others = holders.withLock { holders in
      var others: [Holder] = []
      for key in item.keys.map({ Key(name: $0, domain: item.domain) }) {
        let present = holders[key, default: []]
        others += present
        let around = present.filter { outer.contains($0.index) }.map(\.operation)
        holders[key, default: []].append(Holder(index: index, operation: operation, around: around))
      }
      return others
    }
    for other in others where !outer.contains(other.index) && !plan.outer(of: other.index).contains(index) {
      // In this order: then both were executing when the first was checked. A group that has timed out releases its
      // keys while its members drain.
      let isDraining = other.around.contains(where: \.isFinished)
      if !other.operation.isFinished, isHolding(other), !isDraining, !operation.isFinished {
        log.report("\(index) and \(other.index) executed at once, both under \(item.keys) of domain \(item.domain)")
      }
    }
  }

  private func isHolding(_ holder: Holder) -> Bool {
    holders.withLock { holders in holders.values.contains { $0.contains { $0.index == holder.index } } }
  }

  /// The work of an item is about to end.
  func leave(_ index: Int) {
    let item = plan.items[index]
    if item.keys.isEmpty { return }
    let left = holders.withLock { holders -> [[Holder]] in
      item.keys.map { name in
        let key = Key(name: name, domain: item.domain)
        defer { holders[key]?.removeAll { $0.index == index } }
        return holders[key, default: []]
      }
    }
    withExtendedLifetime(left) {}
  }
}
