#if canImport(ObjectiveC)
import Foundation
import ObjectiveC
import OperationsTestSupport
import Testing

@testable import Operations

/// Loops in which a thread runs one item after the other, without returning to the system.
@Suite(.timeLimit(.minutes(5)))
struct AutoreleasePoolTests {
  /// An object that only an autorelease pool keeps alive.
  private final class Autoreleased: @unchecked Sendable {
    private weak var object: NSObject?

    var isReleased: Bool { object == nil }

    func make() {
      let object = NSObject()
      self.object = object
      _ = unsafe Unmanaged.passRetained(object).autorelease()
    }
  }

  private let object = Autoreleased()
  private let journal = Journal<Bool>()

  private func note() { journal.write(object.isReleased) }

  @Test func event_releasesItsObjectsBeforeTheNextEvent() async {
    let scheduler = SerialScheduler(name: "events")
    let end = await scheduler.held()
    scheduler.schedule { object.make() }
    scheduler.schedule { note() }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == [true])
  }

  @Test func member_releasesItsObjectsBeforeTheNextMember() async {
    let group = GroupOperation { ResultOperation { object.make() } ==> ResultOperation { note() } }
    await start(group)
    await group.finished()
    #expect(journal.entries == [true])
  }

  @Test func timer_releasesItsObjectsBeforeTheNextTimer() async {
    let end = Gate()
    DueWork.shared.add([{ object.make() }, { note() }, { end.open() }])
    await end.opened()
    #expect(journal.entries == [true])
  }
}

@Suite(.timeLimit(.minutes(5)))
struct KeyValueObservingTests {
  private let journal = Journal<String>()

  private final class Observed: AsyncOperation, @unchecked Sendable {
    let begun = Gate()
    private let journal: Journal<String>

    init(_ journal: Journal<String>) { self.journal = journal }

    override func execute() { begun.open() }
    override func didCancel() { journal.write("didCancel") }
  }

  /// Observes a property as that of an `Operation`, because only those of Foundation have the names of its key paths.
  private func observe(
    _ operation: Operation,
    _ name: String,
    _ property: any KeyPath<Operation, Bool> & Sendable
  ) -> NSKeyValueObservation {
    operation.observe(property, options: []) { [journal] operation, _ in
      journal.write("\(name) \(operation[keyPath: property])")
    }
  }

  @Test(arguments: [false, true]) func observersOfTheFourProperties(isCancelled: Bool) async {
    let operation = Observed(journal)
    let observations = [
      observe(operation, "isReady", \.isReady), observe(operation, "isExecuting", \.isExecuting),
      observe(operation, "isFinished", \.isFinished), observe(operation, "isCancelled", \.isCancelled),
    ]
    let dependency = AsyncOperation()
    dependency ==> operation
    let queue = OperationQueue()
    queue.addOperations([operation, dependency])
    await operation.begun.opened()
    if isCancelled { operation.cancel() }
    operation.finish()
    await operation.finished()
    let entries = journal.entries
    #expect(entries.contains("isReady true"))
    #expect(entries.count { $0 == "isFinished true" } == 1 && !entries.contains("isExecuting true"))
    let cancellation = entries.filter { $0 == "didCancel" || $0 == "isCancelled true" }
    #expect(cancellation == (isCancelled ? ["didCancel", "isCancelled true"] : []))
    for observation in observations { observation.invalidate() }
  }
}
#endif
