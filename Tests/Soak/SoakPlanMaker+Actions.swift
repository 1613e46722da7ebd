extension SoakPlanMaker {
  mutating func makeActions() {
    for item in items {
      if item.isSuspended { act(.resume(item.index)) }
      if item.staysOpen { act(.close(item.index)) }
      if item.waitsForGhost { act(.takeGhostBack(item.index)) }
      // One without a limit may hold others that count on that.
      if item.limit > 0, one(of: 3) { act(.limit(item.index, number(1...4))) }
      if item.way == .whenCancelled {
        // Either by itself, or by way of the group around it.
        let group = item.outer
        if let group, one(of: 2) { cancel(group) } else { cancel(item.index) }
      } else if one(of: item.isGroup ? 6 : 12) {
        cancel(item.index)
      }
      if item.isPlain { continue }
      let brings = items.contains { $0.coming == .broughtBy(item.index) }
      if item.hasValue, !brings, one(of: 25) { act(.finish(item.index)) }
      if one(of: 20) { act(.rename(item.index)) }
    }
    for _ in 0..<number(0...3) { act(.lookAtEverything) }
    // Close to each other, or they would not share anything.
    for _ in 0..<number(0...10) {
      let tick = number(0...12)
      callers.append(
        SoakCaller(key: number(0...1), tick: tick, cancelledAt: one(of: 2) ? tick + number(0...6) : nil)
      )
    }
  }

  private mutating func act(_ deed: SoakAction.Deed) {
    actions.append(SoakAction(tick: number(0...SoakPlan.ticks), deed: deed))
  }

  private mutating func cancel(_ index: Int) { act(.cancel(index, threads: number(1...3))) }

  mutating func enqueuers() -> [[Int]] {
    var result: [[Int]] = [[], [], []]
    let top = items.filter { $0.outer == nil }.map(\.index)
    for index in top.shuffled(using: &generator) { result[number(0...2)].append(index) }
    return result
  }

  // MARK: Schedulers

  mutating func makeSchedulers() {
    // The second one's queue is where operations go, too.
    homes = [SoakHomePlan(), SoakHomePlan(), SoakHomePlan(), SoakHomePlan()]
    homes[2].capacity = number(1...6)
    homes[2].policy = number(0...3)
    if one(of: 2) { homes[3].shutdown = (number(5...60), one(of: 2) ? .drain : .discard) }
    if one(of: 4) {
      homes[3].capacity = number(1...6)
      homes[3].policy = number(0...3)
    }
    for _ in 0..<number(1...3) {
      var events: [SoakEvent] = []
      for _ in 0..<number(20...120) { events.append(event()) }
      producers.append(events)
    }
  }

  private mutating func event() -> SoakEvent {
    let home = number(0...3)
    let kind: SoakEvent.Kind
    switch number(0...19) {
    case 0, 1: kind = .coalesced
    case 2: kind = .object
    case 3: kind = homes[home].takesAll ? .operation : .schedule
    case 4: kind = homes[home].takesAll ? .asynchronousOperation : .schedule
    case 5: kind = .delayed(ticks: number(1...30), isCancelled: homes[home].takesAll && one(of: 4))
    // Nobody waits for that time.
    case 6: kind = .delayed(ticks: 1_000_000_000, isCancelled: true)
    case 7: kind = .run(isCancelled: one(of: 4))
    case 8: kind = .send(isCancelled: one(of: 4))
    case 9: kind = .actor
    case 10, 11: kind = .wait((0..<number(0...3)).map { _ in number(0...3) })
    case 12: kind = .delivered(to: number(0...3))
    default: kind = .schedule
    }
    return SoakEvent(home: home, kind: kind)
  }
}
