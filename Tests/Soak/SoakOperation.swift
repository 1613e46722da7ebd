import Foundation
import Operations

/// An item whose work ends in one of many ways.
final class SoakOperation: ResultOperation<Int>, @unchecked Sendable {
  /// A serial queue gets a thread even if those of the pool are blocked.
  static let elsewhere = DispatchQueue(label: "elsewhere")

  private let item: SoakItem
  private weak var world: SoakWorld?
  /// Written by the hand-overs, which come one after the other, on the thread that executes; and by an adapter before.
  private var received: [Int] = []
  private let ends = Locked(0)
  private let refused = Locked<Set<Int>>([])

  /// The values that were said not to count.
  var refusedValues: Set<Int> { refused.withLock { $0 } }

  init(_ item: SoakItem, _ world: SoakWorld) {
    self.item = item
    self.world = world
    super.init()
  }

  func receive(_ value: Int) { received.append(value) }

  override func execute() {
    guard let world else { return }
    world.log.write(.ran(item.index))
    world.watch.enter(item.index, self)
    if item.place == .scheduler, item.way != nil, !world.homes[1].scheduler.isCurrent {
      world.log.report("\(item.index) did not execute on its scheduler")
    }
    world.bringNewcomers(.broughtBy(item.index))
    switch item.way ?? (item.isFailing ? .failing : .atOnce) {
    case .atOnce, .failing: end()
    case .elsewhere: Self.elsewhere.async { self.end() }
    case .twice:
      Self.elsewhere.async { self.end() }
      end()
    case .blocking:
      Thread.sleep(forTimeInterval: 0.001)
      end()
    case .failingElsewhere: DispatchQueue.global().async { self.end() }
    case .byEvent: if !world.ends.schedule({ self.end() }) { world.log.report("an open scheduler refused an event") }
    case .never, .late, .whenCancelled: break
    case .cancellingGroup:
      item.outer.flatMap { world.operations[$0] }?.cancel()
      end()
    }
  }

  override func didCancel() { if item.way == .whenCancelled { end() } }

  override func didFinish() {
    if !isFinished || result == nil { world?.log.report("\(item.index) heard of its end before that") }
    if item.way == .late { DispatchQueue.global().async { self.end() } }
  }

  private func end() {
    world?.watch.leave(item.index)
    if item.isFailing { return finish(with: SoakError(item: item.index)) }
    // Another value each time, which shows which one counts.
    let value = ends.withLock { ends in
      defer { ends += 1 }
      return item.value(of: received) &+ ends
    }
    if finish(returning: value) {
      world?.log.write(.counted(item.index))
    } else {
      refused.withLock { _ = $0.insert(value) }
    }
  }
}
