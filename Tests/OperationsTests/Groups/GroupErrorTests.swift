import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GroupErrorTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func failing(_ name: String) -> NoteOperation {
    NoteOperation(name, journal, failing: TestError("error of \(name)"))
  }

  @Test func failuresHaveTheirPathAndErrorsAreFlat() async {
    let page = failing("page 3")
    let group = GroupOperation("Import") {
      GroupOperation("Download") {
        NoteOperation("page 2", journal)
        page
      }
    }
    queue.addOperation(group)
    await group.finished()
    #expect(group.failures.map(\.path) == [["Import", "Download", "page 3"]])
    #expect(group.errors as? [TestError] == [TestError("error of page 3")])
    #expect(!group.isSuccessful && !group.isCancelled)
  }

  @Test func anOperationWithoutANameGoesByItsTypes() async {
    let group = GroupOperation([AsyncBlockOperation { $0.finish(with: TestError("a")) }])
    queue.addOperation(group)
    await group.finished()
    #expect(group.failures.map(\.path) == [["GroupOperation", "AsyncBlockOperation"]])
  }

  @Test func failuresComeInTheOrderTheyHappened() async {
    let group = GroupOperation("G") { failing("a") ==> failing("b") ==> failing("c") }
    queue.addOperation(group)
    await group.finished()
    #expect(group.failures.map { $0.path[1] } == ["a", "b", "c"])
  }

  @Test(arguments: [false, true])
  func noErrorIsLost(asynchronously: Bool) async {
    let group = GroupOperation(
      (0..<2000).map { index in
        AsyncBlockOperation { operation in
          if asynchronously {
            DispatchQueue.global().async { operation.finish(with: TestError("\(index)")) }
          } else {
            operation.finish(with: TestError("\(index)"))
          }
        }.named("\(index)")
      }
    )
    queue.addOperation(group)
    await group.finished()
    #expect(group.failures.count == 2000 && group.errors.count == 2000)
    #expect(Set(group.failures.map { $0.path[1] }).count == 2000)
  }

  @Test func collectGoesOn() async {
    let group = GroupOperation("G") { failing("a") ==> NoteOperation("b", journal) }
    #expect(group.errorPolicy == .collect)
    queue.addOperation(group)
    await group.finished()
    #expect(journal.entries == ["a", "b"])
  }

  /// Notes whether who waits for a failure could begin before the group has heard of it.
  private final class LookingGroup: GroupOperation, @unchecked Sendable {
    let couldBegin = Journal<Bool>()

    override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
      if !errors.isEmpty { couldBegin.write(operations.contains { $0.name == "next" && $0.isReady }) }
      return errors
    }
  }

  @Test func whoWaitsForAFailureCannotBeginBeforeTheOthersAreCancelled() async {
    let failing = AsyncBlockOperation { operation in
      DispatchQueue.global().async { operation.finish(with: TestError("a")) }
    }
    let group = LookingGroup([failing, NoteOperation("next", journal).waits(for: failing)])
    group.errorPolicy = .cancelOnFailure
    queue.addOperation(group)
    await group.finished()
    #expect(group.couldBegin.entries == [false] && journal.entries.isEmpty)
  }

  @Test func cancelOnFailureCancelsTheOthersAndWhatComesLater() async {
    let held = HeldOperation()
    let never = NoteOperation("never", journal)
    let group = GroupOperation([held, failing("a") ==> never, never.dependencies[0]])
    group.errorPolicy = .cancelOnFailure
    let cancelled = Gate()
    held.addObserver(OperationObserver(didCancel: { _ in cancelled.open() }))
    queue.addOperation(group)
    await cancelled.opened()
    #expect(!group.isFinished, "a member is still executing")
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    held.gate.open()
    await group.finished()
    #expect(journal.entries == ["a"])
    #expect(never.isCancelled && late.isCancelled && late.isFinished)
    #expect(group.errors.count == 1 && !group.isCancelled)
  }

  @Test func theGroupsOwnErrors() async {
    let held = HeldOperation()
    let group = GroupOperation("G") { held }
    queue.addOperation(group)
    await held.begun.opened()
    group.finish(with: TestError("own"))
    #expect(!group.isFinished, "it ends when its members have")
    #expect(group.errors.count == 1)
    held.gate.open()
    await group.finished()
    #expect(group.failures.map(\.path) == [["G"]])
    #expect(group.errors as? [TestError] == [TestError("own")])
  }

  @Test func theHookTranslatesAndDrops() async {
    final class Translating: GroupOperation, @unchecked Sendable {
      override init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
        super.init(name, operations)
      }

      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        switch member.name {
        case "translated": errors.map { _ in TestError("translated") }
        case "dropped": []
        case "added": [TestError("added")]
        case "nested": errors.filter { "\($0)" != "error of a" }
        default: errors
        }
      }
    }
    let group = Translating("G") {
      failing("translated") ==> failing("dropped") ==> NoteOperation("added", journal)
        ==> GroupOperation("nested") { failing("a") ==> failing("b") }
    }
    queue.addOperation(group)
    await group.finished()
    #expect(
      group.failures.map { "\($0)" } == [
        "G › translated: translated", "G › added: added", "G › nested › b: error of b",
      ]
    )
  }

  @Test func theHookIsCalledOnceForEveryMemberAndNeverTwiceAtOnce() async {
    final class Counting: GroupOperation, @unchecked Sendable {
      // Without a lock on purpose: the thread sanitizer would see two calls at once.
      var inside = 0
      var calls = 0
      var mostInside = 0
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        inside += 1
        mostInside = max(mostInside, inside)
        calls += 1
        inside -= 1
        return errors
      }
    }
    let group = Counting((0..<500).map { $0.isMultiple(of: 3) ? failing("\($0)") : plain("\($0)", journal) })
    queue.addOperation(group)
    await group.finished()
    #expect(group.calls == 500 && group.mostInside == 1)
    #expect(group.failures.count == 167)
  }

  @Test func whoFinishesDuringACallOfTheHookDoesNotCallItAndIsNotHeldUp() async {
    final class Waiting: GroupOperation, @unchecked Sendable {
      let calls = Journal<String>()
      let otherHasFinished = DispatchSemaphore(value: 0)

      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        calls.write("begin \(member.name ?? "")")
        // Another member's `finish` returns, on its own thread, while this call lasts.
        if member.name == "first" { otherHasFinished.wait() }
        calls.write("end \(member.name ?? "")")
        return errors
      }
    }
    let (first, second) = (HeldOperation().named("first"), HeldOperation().named("second"))
    let group = Waiting([first, second])
    queue.addOperation(group)
    await first.begun.opened()
    await second.begun.opened()
    DispatchQueue.global().async { first.gate.open() }
    await group.calls.reaches(1)
    second.gate.open()
    group.otherHasFinished.signal()
    await group.finished()
    #expect(group.calls.entries == ["begin first", "end first", "begin second", "end second"])
  }

  @Test func theHookMayAddMembers() async throws {
    final class Continuing: GroupOperation, @unchecked Sendable {
      var rest = 10
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        rest -= 1
        if rest > 0 { addOperation(AsyncOperation()) }
        return errors
      }
    }
    let group = Continuing([AsyncOperation()])
    try await queue.run(group)
    #expect(group.rest == 0)
  }
}
