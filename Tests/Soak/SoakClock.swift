import Foundation
import Operations
import OperationsTestSupport

/// Moves a world's clock on, a millisecond a tick, and carries out what is due.
///
/// How fast the ticks come changes nothing of what has to come of it.
final class SoakClock: @unchecked Sendable {
  typealias Deed = @Sendable () -> Void

  private struct State {
    var tick = 0
    var deeds: [(tick: Int, deed: Deed)]
    var pending: Int
  }

  /// Every deed has been carried out.
  let isDone = Gate()
  private let clock: ManualClock
  private let state: Locked<State>
  private let timer: any DispatchSourceTimer

  init(_ clock: ManualClock, _ deeds: [(tick: Int, deed: Deed)]) {
    self.clock = clock
    let sorted = deeds.sorted { $0.tick < $1.tick }
    state = Locked(State(deeds: sorted, pending: sorted.count))
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "soak clock"))
    if deeds.isEmpty { isDone.open() }
  }

  func start() {
    timer.schedule(deadline: .now(), repeating: .microseconds(250))
    timer.setEventHandler { self.advance() }
    timer.resume()
  }

  /// The handler holds this.
  func stop() {
    timer.setEventHandler {}
    timer.cancel()
  }

  private func advance() {
    clock.advance(by: .milliseconds(1))
    let due = state.withLock { state in
      state.tick += 1
      let due = state.deeds.prefix { $0.tick < state.tick }
      state.deeds.removeFirst(due.count)
      return due.map(\.deed)
    }
    for deed in due {
      DispatchQueue.global().async {
        deed()
        let isLast = self.state.withLock { state in
          state.pending -= 1
          return state.pending == 0
        }
        if isLast { self.isDone.open() }
      }
    }
  }
}
