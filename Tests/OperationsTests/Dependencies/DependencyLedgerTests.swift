import Foundation
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
    guard case .waitingBehindNew = ledger.readiness() else {
      Issue.record("no gate")
      return
    }
    guard case .waiting = ledger.readiness() else {
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
    let isWaitedFor = ledger.add(dependent: operation)
    #expect(!isWaitedFor)
  }

  @Test func noticesThatWereTakenBackAreCounted() {
    var ledger = DependencyLedger()
    let added = [ledger.add(dependent: operation), ledger.add(dependent: operation)]
    let removed = [ledger.remove(dependent: operation), ledger.remove(dependent: operation)]
    #expect(added == [true, true] && removed == [2, 0])
  }

  @Test func releasedDependentsDoNotPileUp() {
    var ledger = DependencyLedger()
    for _ in 0..<10_000 { _ = ledger.add(dependent: AsyncOperation()) }
    #expect(ledger.dependents.count < 1000)
  }
}
