import Foundation
import Soak
import Testing

@testable import Operations

/// The ledger as a value. ``LedgerInterleavingTests`` walks readiness and notifications.
struct DependencyLedgerTests {
  private let operation = AsyncOperation()

  @Test func foundationIsToldOfANewDependencyOnlyIfItHasAsked() {
    var bridge = FoundationBridge()
    let early = bridge.makeGateIfRead()
    #expect(early == nil)
    guard case .waitingBehindNew = bridge.check(isWaiting: true, isOpener: false, isNudge: false) else {
      Issue.record("no gate")
      return
    }
    guard case .waiting = bridge.check(isWaiting: true, isOpener: false, isNudge: false) else {
      Issue.record("a second gate")
      return
    }
    _ = bridge.takeGate()
    let gate = bridge.makeGateIfRead()
    #expect(gate != nil, "it believes the operation to be ready")
  }

  @Test func aClosedLedgerIgnoresLateNoticesAndTakesNoDependents() {
    var ledger = DependencyLedger()
    ledger.add(.own(operation))
    let dependencies = ledger.takeDependencies()
    _ = ledger.close()
    #expect(dependencies.count == 1 && ledger.dependencies.isEmpty)
    let isLast = ledger.countDown()
    #expect(!isLast, "counted")
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
    #expect(ledger.dependents?.count ?? .max < 1000)
  }

  @Test func aListIsTheSameWithAndWithoutAnIndex() {
    struct Entry: Identifiable, Equatable {
      let id: ObjectIdentifier
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
        #expect(removed == entries.filter { $0.id == identity })
        entries.removeAll { $0.id == identity }
      } else {
        let entry = Entry(id: identity, number: number)
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
}
