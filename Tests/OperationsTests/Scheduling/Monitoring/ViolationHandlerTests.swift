import Operations
import OperationsTestSupport
import Soak
import Testing

/// With a violation handler the program continues. The handler is global, so the tests run one at a time.
@Suite(.serialized, .timeLimit(.minutes(5)))
final class ViolationHandlerTests {
  private let violations = Journal<SchedulerViolation>()
  private let scheduler = SerialScheduler(name: "home")
  private let other = SerialScheduler(name: "abroad")

  init() { SerialScheduler.violationHandler = { [violations] violation in violations.write(violation) } }

  deinit { SerialScheduler.violationHandler = nil }

  @Test func confinedPropertiesAreRecordedAndTouched() async throws {
    let shelf = Shelf(on: scheduler)
    shelf.items = [1]
    shelf.items.append(2)
    #expect(shelf.items == [1, 2])
    #expect(violations.count == 3)
    for violation in violations.entries {
      #expect(violation.scheduler == "home" && violation.currentScheduler == nil && violation.subject.contains("Shelf"))
      #expect(violation.origin?.description.contains("Shelf.swift") == true)
    }
    #expect(try await shelf.run { $0.items } == [1, 2])
    #expect(violations.count == 3)
  }

  @Test func preconditionsAreRecorded() async throws {
    let scheduler = scheduler
    scheduler.preconditionIsCurrent("Drawing")
    try await other.run { scheduler.preconditionIsCurrent() }
    await MainActor.run { scheduler.preconditionIsCurrent() }
    try await scheduler.run { scheduler.preconditionIsCurrent("not said") }
    #expect(violations.entries[0].subject == "Drawing")
    #expect(violations.entries.map(\.currentScheduler) == [nil, "abroad", "main"])
    #expect(violations.entries[1].origin?.description.contains("ViolationHandlerTests") == true)
  }

  @Test func theHandlerMayDoTheSame() async throws {
    SerialScheduler.violationHandler = { [violations, other] violation in
      violations.write(violation)
      if violations.count < 3 { other.preconditionIsCurrent("within the handler") }
    }
    Shelf(on: scheduler).items.append(1)
    #expect(violations.entries.map(\.scheduler) == ["home", "abroad", "abroad"])
  }

  @Test func theHandlerIsReleasedWhenItIsReplaced() async {
    let live = LiveCount()
    SerialScheduler.violationHandler = { [token = LiveCount.Token(live)] _ in withExtendedLifetime(token) {} }
    #expect(live.alive == 1)
    SerialScheduler.violationHandler = nil
    await live.none()
    #expect(SerialScheduler.violationHandler == nil)
  }
}
