import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Members of a holder beside operations outside that claim the same key.
@Suite(.timeLimit(.minutes(5)))
struct NestedClaimTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  /// A claim that admits others, and one that does not.
  private enum Stronger: CaseIterable {
    case exclusive, heavy

    func weak<O: AsyncOperation>(_ operation: O, in domain: ExclusivityDomain) -> O {
      self == .exclusive ? operation.shared("db", in: domain) : operation.limited("db", to: 3, in: domain)
    }

    func strong<O: AsyncOperation>(_ operation: O, in domain: ExclusivityDomain) -> O {
      switch self {
      case .exclusive: operation.exclusive("db", in: domain)
      case .heavy: operation.limited("db", to: 3, weight: 3, in: domain)
      }
    }
  }

  /// The waiter outside does not wait for the group, so the members of the group do not go before it.
  @Test(arguments: Stronger.allCases) private func membersOfAHolder_doNotPassAWaiterOutside(_ claims: Stronger) async {
    let held = HeldOperation()
    let group = GroupOperation("group") { held }.exclusive("a", in: domain)
    await queue.add(group, until: held.begun)
    let reader = claims.weak(HeldOperation(), in: domain)
    group.addOperation(reader)
    await reader.begun.opened()
    let (outside, next) = (claims.strong(note("outside"), in: domain), claims.weak(note("next"), in: domain))
    queue.addOperation(outside)
    group.addOperation(next)
    let free = note("free")
    group.addOperation(free)
    await free.finished()
    reader.gate.open()
    for operation in [outside, next] { await operation.finished() }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["free", "outside", "next"])
  }

  @Test(arguments: Stronger.allCases)
  private func aStrongerMember_waitsForTheOtherHoldersAndIsAlone(_ claims: Stronger) async {
    let (own, other) = (HeldOperation(), claims.weak(HeldOperation(), in: domain))
    let group = claims.weak(GroupOperation("group") { own }, in: domain)
    queue.addOperations([group, other])
    for operation in [own, other] { await operation.begun.opened() }
    let member = claims.strong(HeldOperation().named("member"), in: domain)
    member.addObserver(OperationObserver(didFinish: { [journal] _ in journal.write("member") }))
    let (newcomer, free) = (claims.weak(note("newcomer"), in: domain), note("free"))
    group.addOperations([member, free])
    await free.finished()
    queue.addOperation(newcomer)
    #expect(!member.begun.isOpen && domain.waiting(for: "db") == ["member", "newcomer"])
    other.gate.open()
    await member.begun.opened()
    await queue.run(settling: [note("free")])
    member.gate.open()
    await newcomer.finished()
    await group.finished(opening: own.gate)
    #expect(journal.entries == ["free", "free", "member", "newcomer"])
  }

  @Test(arguments: Stronger.allCases)
  private func ofTwoStrongerMembersThatWaitForEachOther_oneIsToldSo(_ claims: Stronger) async throws {
    let names = ["first", "second"]
    let own = names.map { _ in HeldOperation() }
    let groups = zip(names, own).map { name, own in claims.weak(GroupOperation(name) { own }, in: domain) }
    queue.addOperations(groups)
    for operation in own { await operation.begun.opened() }
    let members = names.map { claims.strong(note("member of \($0)"), in: domain) }
    for (group, member) in zip(groups, members) { group.addOperation(member) }
    await poll { members.contains { $0.isFinished } }
    for operation in own { operation.gate.open() }
    for group in groups { await group.finished() }
    let refused = members.indices.filter { !members[$0].errors.isEmpty }
    try #require(refused.count == 1 && journal.count == 1)
    let error = try #require(members[refused[0]].errors.first as? OperationError)
    #expect(error.code == .waitCycle && error.message.contains("“member of \(names[refused[0]])”"))
    #expect(error.message.contains("“\(names[1 - refused[0]])”"))
  }
}
