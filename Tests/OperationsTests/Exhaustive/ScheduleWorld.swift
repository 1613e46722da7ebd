import Foundation

@testable import Operations

/// A group's schedule, and what its engine has done about it.
struct ScheduleWorld: InterleavedWorld {
  struct Member: Hashable {
    /// It finishes on another thread.
    var isAsynchronous = false
    /// The group wants to look at its result.
    var isFailing = false
    /// What it makes ready.
    var dependent: Int?
  }

  struct Fingerprint: Hashable {
    let phase: GroupSchedule.Phase
    let counts: [Int]
    let flags: [Bool]
    let deeds: Deeds
  }

  struct Deeds: Hashable {
    /// In the order in which they became ready.
    var ready: [Int] = []
    var unaccounted: [Int] = []
    var started: Set<Int> = []
    var finished: Set<Int> = []
    var settled = 0
    var coming = 0
    var ends = 0
    var runners = 0
    var isAccounting = false
    var isOpen = false
    /// Members that came after the end.
    var refused = 0
  }

  /// Only to be named.
  static let operations = (0..<4).map { _ in Operation() }

  let members: [Member]
  var schedule = GroupSchedule()
  var deeds = Deeds()
  private(set) var breach: String?

  init(_ members: [Member], limit: Int, staysOpen: Bool = false) {
    self.members = members
    schedule.limit = limit
    schedule.staysOpen = staysOpen
    deeds.isOpen = staysOpen
  }

  var fingerprint: Fingerprint {
    Fingerprint(
      phase: schedule.phase,
      counts: [schedule.unfinished, schedule.slotsTaken, schedule.unaccounted.count, schedule.ready.count],
      flags: [
        schedule.isRunnerWaiting, schedule.isAccounting, schedule.isWaitingForMembers, schedule.isWatched,
        schedule.isSuspended, schedule.isDraining, schedule.isFinishing, schedule.staysOpen,
      ],
      deeds: deeds
    )
  }

  mutating func promise(_ isKept: Bool, _ breach: String) {
    if !isKept, self.breach == nil { self.breach = breach }
  }

  mutating func check() {
    promise(deeds.ends <= 1, "the group ends twice")
    promise(deeds.runners <= 1, "two runners wait to begin")
    promise(schedule.slotsTaken == deeds.started.count - deeds.finished.count, "a slot was lost")
    promise(schedule.ready.count == deeds.ready.count, "somebody who is ready was lost")
  }

  func breachAtEnd(waiting: Int) -> String? {
    if waiting > 0 { return "somebody waits for ever" }
    let forgotten = members.count - deeds.settled - deeds.refused
    if forgotten > 0 { return "\(forgotten) members were forgotten" }
    return deeds.ends == 1 || deeds.isOpen ? nil : "the group never ends"
  }
}
