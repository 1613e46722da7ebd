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
#endif
