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
    let group = GroupOperation("Import") {
      GroupOperation("Download") {
        NoteOperation("page 2", journal)
        failing("page 3")
      }
    }
    await queue.run(settling: [group])
    #expect(group.failures.map(\.path) == [["Import", "Download", "page 3"]])
    #expect(group.errors as? [TestError] == [TestError("error of page 3")])
    #expect(!group.isSuccessful && !group.isCancelled && group.errorPolicy == .collect)
  }

  @Test func cancelOnFailureCancelsTheOthersAndWhatComesLater() async {
    let (held, bad, never) = (HeldOperation(), failing("a"), NoteOperation("never", journal))
    bad ==> never
    let group = GroupOperation([held, never, bad])
    group.errorPolicy = .cancelOnFailure
    let cancelled = Gate()
    held.addObserver(OperationObserver(didCancel: { _ in cancelled.open() }))
    await queue.add(group, until: cancelled)
    #expect(!group.isFinished, "a member is still executing")
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    held.gate.open()
    await group.finished()
    #expect(journal.entries == ["a"])
    #expect(never.isCancelled && late.isCancelled && late.isFinished)
    #expect(group.errors.count == 1 && !group.isCancelled)
  }

  @Test func theHookTranslatesAndDrops() async {
    final class Translating: GroupOperation, @unchecked Sendable {
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
    let nested = GroupOperation("nested") { failing("a") ==> failing("b") }
    let members = [failing("translated"), failing("dropped"), NoteOperation("added", journal), nested]
    let group = Translating(chain(members)).named("G")
    await queue.run(settling: [group])
    let failures = ["G › translated: translated", "G › added: added", "G › nested › b: error of b"]
    #expect(group.failures.map { "\($0)" } == failures)
  }

  @Test func theHookIsCalledOnceForEveryMemberAndNeverTwiceAtOnce() async {
    final class Counting: GroupOperation, @unchecked Sendable {
      // Without a lock on purpose: the thread sanitizer would see two calls at once.
      var (inside, mostInside, calls) = (0, 0, 0)

      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        inside += 1
        mostInside = max(mostInside, inside)
        calls += 1
        inside -= 1
        return errors
      }
    }
    let group = Counting((0..<500).map { $0.isMultiple(of: 3) ? failing("\($0)") : plain("\($0)", journal) })
    await queue.run(settling: [group])
    #expect(group.calls == 500 && group.mostInside == 1 && group.failures.count == 167)
  }

  @Test func finishedDuringACallOfTheHook_returnsAndTheHookIsCalledAfterwards() async {
    final class Waiting: GroupOperation, @unchecked Sendable {
      let (calls, otherHasFinished) = (Journal<String>(), DispatchSemaphore(value: 0))

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
    await queue.add(group, until: first.begun)
    await second.begun.opened()
    DispatchQueue.global().async { first.gate.open() }
    await group.calls.reaches(1)
    second.gate.open()
    group.otherHasFinished.signal()
    await group.finished()
    #expect(group.calls.entries == ["begin first", "end first", "begin second", "end second"])
  }
}
