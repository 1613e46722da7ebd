import Foundation
import Soak
import Testing

@testable import Operations

/// The ledger as a value.
struct DependencyLedgerTests {
  private let operation = AsyncOperation()

  private func isReady(_ action: DependencyLedger.CountAction) -> Bool {
    if case .becomeReady = action { return true }
    return false
  }

  @Test func itBecomesReadyOnceWhenTheLastIsCounted() {
    var ledger = DependencyLedger()
    let gates = [ledger.add(.own(operation)), ledger.add(.own(operation))]
    #expect(gates == [nil, nil])
    let actions = [ledger.countDown(), ledger.countDown()]
    #expect(actions.map(isReady) == [false, true])
  }

  @Test func theGateIsMadeOnceAndHandedOutWithTheLastCount() {
    var ledger = DependencyLedger()
    let early = ledger.makeGate()
    _ = ledger.add(.own(operation))
    let (gate, second) = (ledger.makeGate(), ledger.makeGate())
    #expect(early == nil && gate != nil && second == nil)
    guard case .becomeReady(let handedOut) = ledger.countDown() else {
      Issue.record("not ready")
      return
    }
    #expect(handedOut === gate)
  }

  @Test func foundationIsToldOfANewDependencyOnlyIfItHasAsked() {
    var ledger = DependencyLedger()
    let early = ledger.add(.own(operation))
    #expect(early == nil)
    guard case .waitingBehindNew = ledger.readiness(byOpener: false, byNudge: false) else {
      Issue.record("no gate")
      return
    }
    guard case .waiting = ledger.readiness(byOpener: false, byNudge: false) else {
      Issue.record("a second gate")
      return
    }
    _ = ledger.countDown()
    let gate = ledger.add(.own(operation))
    #expect(gate != nil, "it believes the operation to be ready")
  }

  @Test func aClosedLedgerIgnoresLateNoticesAndTakesNoDependents() {
    var ledger = DependencyLedger()
    _ = ledger.add(.own(operation))
    let remains = ledger.close()
    #expect(remains.dependencies.count == 1 && ledger.dependencies.isEmpty)
    guard case .ignore = ledger.countDown() else {
      Issue.record("counted")
      return
    }
    let isWaitedFor = ledger.add(dependent: operation).isWaitedFor
    #expect(!isWaitedFor)
  }

  @Test func noticesThatWereTakenBackAreCounted() {
    var ledger = DependencyLedger()
    let added = [ledger.add(dependent: operation).isWaitedFor, ledger.add(dependent: operation).isWaitedFor]
    let removed = [ledger.remove(dependent: operation).count, ledger.remove(dependent: operation).count]
    #expect(added == [true, true] && removed == [2, 0])
  }

  @Test func releasedDependentsDoNotPileUp() {
    var ledger = DependencyLedger()
    for _ in 0..<10_000 { _ = ledger.add(dependent: AsyncOperation()) }
    #expect(ledger.dependents.count < 1000)
  }

  @Test func aListIsTheSameWithAndWithoutAnIndex() {
    struct Entry: LedgerEntry, Equatable {
      let identity: ObjectIdentifier
      let number: Int
    }
    var generator = SeededGenerator(seed: 7)
    let operations = (0..<150).map { _ in AsyncOperation() }
    let identities = operations.map { ObjectIdentifier($0) }
    var list = LedgerList<Entry>()
    var entries: [Entry] = []
    for number in 0..<20_000 {
      let identity = identities[Int.random(in: 0..<150, using: &generator)]
      // It grows and shrinks in turns.
      if Int.random(in: 0..<(number / 1_000 % 2 == 0 ? 4 : 2), using: &generator) == 0 {
        let removed = list.remove(identity)
        #expect(removed == entries.filter { $0.identity == identity })
        entries.removeAll { $0.identity == identity }
      } else {
        let entry = Entry(identity: identity, number: number)
        list.append(entry)
        entries.append(entry)
      }
      if number.isMultiple(of: 4_999) {
        list.compact { $0.number % 3 > 0 }
        entries.removeAll { $0.number % 3 == 0 }
      }
      #expect(list.count == entries.count && list.isEmpty == entries.isEmpty)
      if number.isMultiple(of: 50) { #expect(list.entries == entries) }
    }
    #expect(list.takeAll().compactMap(\.self) == entries && list.isEmpty && list.entries.isEmpty)
    withExtendedLifetime(operations) {}
  }

  // MARK: Wake-ups

  /// A ledger whose only dependency has just been counted down, and the gate of which is being opened.
  private func opening() -> DependencyLedger {
    var ledger = DependencyLedger()
    _ = ledger.add(.own(operation))
    _ = ledger.readiness(byOpener: false, byNudge: false)
    _ = ledger.countDown()
    return ledger
  }

  private func isOverlooked(_ readiness: DependencyLedger.Readiness) -> Bool {
    if case .overlooked = readiness { return true }
    return false
  }

  @Test func itIsSatisfiedOnlyWhenTheGateIsOpen() {
    var ledger = opening()
    #expect(ledger.remaining == 0 && !ledger.isSatisfied)
    let nudges = ledger.gateDidOpen()
    #expect(ledger.isSatisfied && !nudges, "nobody was told anything outdated")
  }

  @Test func whoLooksAgainWhileTheGateIsOpenedLeavesTheNudgeToTheOpener() {
    var ledger = opening()
    let now = ledger.lookAgain(isCancelled: false)
    let nudges = ledger.gateDidOpen()
    #expect(!now && nudges)
  }

  @Test func whoLooksAgainAfterwardsNudges() {
    var ledger = opening()
    _ = ledger.gateDidOpen()
    let now = ledger.lookAgain(isCancelled: false)
    #expect(now)
  }

  @Test func whoLooksAgainBeforeNeedNot() {
    var ledger = DependencyLedger()
    let ready = ledger.lookAgain(isCancelled: false)
    _ = ledger.add(.own(operation))
    _ = ledger.makeGate()
    let waiting = ledger.lookAgain(isCancelled: false)
    let cancelled = ledger.lookAgain(isCancelled: true)
    #expect(!ready && !waiting && cancelled)
  }

  @Test func oneThatFoundationAsksAboutAgainMayHaveBeenOverlooked() {
    var ledger = opening()
    let byOpener = ledger.readiness(byOpener: true, byNudge: false)
    _ = ledger.gateDidOpen()
    let again = [ledger.readiness(byOpener: false, byNudge: false), ledger.readiness(byOpener: false, byNudge: false)]
    #expect(!isOverlooked(byOpener), "that is how it goes")
    #expect(again.map(isOverlooked) == [true, false], "once is enough")
  }

  @Test func aNudgeMayComeBeforeAnOutdatedAnswerIsNoted() {
    var ledger = opening()
    let meanwhile = ledger.readiness(byOpener: false, byNudge: false)
    let nudges = ledger.gateDidOpen()
    let answers = [ledger.readiness(byOpener: false, byNudge: true), ledger.readiness(byOpener: false, byNudge: false)]
    #expect(!isOverlooked(meanwhile) && nudges)
    #expect(answers.map(isOverlooked) == [false, true], "whoever enqueues it plainly asks again after that")
  }

  @Test func whoeverOpensTheLastOfTwoGatesNudges() {
    var ledger = opening()
    _ = ledger.add(.own(operation))
    _ = ledger.countDown()
    let nudges = [ledger.gateDidOpen(), ledger.gateDidOpen()]
    #expect(nudges == [false, true])
  }
}
