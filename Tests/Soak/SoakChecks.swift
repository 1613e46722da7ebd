import Foundation
import Operations

/// What has to be true at the end of a round.
struct SoakChecks {
  let world: SoakWorld
  var violations: [String] = []
  private(set) var started: [Int: Int] = [:]
  private(set) var ran: [Int: Int] = [:]
  private(set) var finished: [Int: Int] = [:]
  private(set) var counts: [SoakLog.Entry: Int] = [:]
  var plan: SoakPlan { world.plan }

  init(_ world: SoakWorld) {
    self.world = world
    violations = world.log.violations
    for (position, entry) in world.log.entries.enumerated() {
      counts[entry, default: 0] += 1
      switch entry {
      case .started(let index): started[index] = position
      case .ran(let index): ran[index] = position
      case .finished(let index): finished[index] = position
      case .attempted, .cancelled, .accounted, .counted, .added: break
      }
    }
    for (entry, count) in counts where count > 1 { violations.append("\(count) times: \(entry)") }
    for item in plan.items where isPresent(item) {
      checkEnd(of: item)
      checkOrder(of: item)
      if item.isGroup { checkGroup(item) } else if !item.isPlain { checkOutcome(of: item) }
    }
    checkPlaces()
  }

  /// Whether it was enqueued.
  func isPresent(_ item: SoakItem) -> Bool {
    switch item.coming {
    case .atFirst, .awaited: true
    case .broughtBy, .whenGroupIsCancelled: counts[.added(item.index)] != nil
    }
  }

  func own(_ index: Int) -> AsyncOperation? { world.operations[index] as? AsyncOperation }

  mutating func expect(_ isTrue: Bool, _ item: SoakItem, _ words: @autoclosure () -> String) {
    if isTrue { return }
    let operation = world.operations[item.index]
    let errors = (operation as? AsyncOperation)?.errors ?? []
    violations.append("\(item.index) \(words()); errors \(errors), cancelled \(operation.isCancelled): \(item)")
  }

  private mutating func checkEnd(of item: SoakItem) {
    let operation = world.operations[item.index]
    for part in world.parts[item.index] { expect(part.isFinished, item, "has not finished") }
    guard let own = operation as? AsyncOperation else {
      let isExplained = ran[item.index] != nil || isCancelledForReason(item)
      return expect(isExplained, item, "finished unexecuted, without a reason")
    }
    expect(finished[item.index] != nil, item, "was not said to have finished")
    expect(own.state == .finished, item, "is \(own.state)")
    expect(ran[item.index] == nil || started[item.index] != nil, item, "did its work without having been started")
    expect(
      (counts[.cancelled(item.index)] != nil) == own.isCancelled,
      item,
      "was told of no cancellation, or a wrong one"
    )
    expect(!own.isCancelled || isCancelledForReason(item), item, "was cancelled without a reason")
    if started[item.index] != nil {
      expect(item.condition != .unmet && item.condition != .unmetLater, item, "executed in spite of its condition")
    } else {
      expect(isUnexecutedForReason(item), item, "finished unexecuted, without a reason")
    }
  }

  private mutating func checkOrder(of item: SoakItem) {
    guard let start = started[item.index] else { return }
    for other in item.dependencies + item.inputs where !plan.items[other].isPlain {
      let isInOrder = finished[other].map { $0 < start } ?? false
      expect(isInOrder, item, "began before the end of \(other), for which it waits")
    }
  }

  /// All queues are empty, and all keys free.
  private mutating func checkPlaces() {
    for queue in world.queues {
      let report = queue.stallReport()
      if !report.entries.isEmpty { violations.append("\(report)") }
    }
    for domain in world.domains {
      for key in (SoakPlan.keys + SoakPlan.sharedKeys).map({ ExclusivityKey($0) }) {
        let holders = domain.holders(of: key)
        if !holders.isEmpty { violations.append("\(holders) still hold \(key)") }
        let waiting = domain.waiting(for: key)
        if !waiting.isEmpty { violations.append("\(waiting) still wait for \(key)") }
      }
    }
  }
}
