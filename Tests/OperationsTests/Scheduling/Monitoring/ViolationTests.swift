import Foundation
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
      #expect(violation.scheduler == "home" && violation.touchedOn == nil)
      #expect(violation.subject.contains("Shelf"))
      #expect(violation.description.contains("“home”"))
      #expect(violation.origin?.description.contains("Shelf.swift") == true)
    }
    #expect(try await shelf.run { $0.items } == [1, 2])
    #expect(violations.count == 3)
  }

  @Test func theOtherSchedulerIsRecorded() async throws {
    let shelf = Shelf(on: scheduler)
    try await other.run { shelf.items.append(1) }
    #expect(violations.entries.map(\.touchedOn) == ["abroad"])
    #expect(violations.entries[0].description.contains("“home”"))
    #expect(violations.entries[0].description.contains("“abroad”"))
    await MainActor.run { shelf.items.append(2) }
    #expect(violations.entries.map(\.touchedOn) == ["abroad", "main"])
  }

  @Test func scheduledObjectsAreRecorded() async throws {
    let object = SchedulableObject([1, 2], on: scheduler)
    #expect(object.object == [1, 2])
    #expect(try await scheduler.run { object.object } == [1, 2])
    #expect(violations.count == 1)
    #expect(violations.entries[0].subject.contains("Array<Int>"))
  }

  @Test func preconditionsAreRecorded() async throws {
    let scheduler = scheduler
    scheduler.preconditionIsCurrent("Drawing")
    try await other.run { scheduler.preconditionIsCurrent() }
    try await scheduler.run { scheduler.preconditionIsCurrent("not said") }
    #expect(violations.count == 2)
    #expect(violations.entries[0].subject == "Drawing" && violations.entries[0].touchedOn == nil)
    #expect(violations.entries[1].touchedOn == "abroad")
    #expect(violations.entries[1].origin?.description.contains("ViolationTests") == true)
  }

  @Test func theHandlerMayDoTheSame() async throws {
    let shelf = Shelf(on: scheduler)
    let violations = violations
    let other = other
    SerialScheduler.violationHandler = { violation in
      violations.write(violation)
      if violations.count < 3 { other.preconditionIsCurrent("within the handler") }
    }
    shelf.items.append(1)
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

#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
private final class Camera {
  var shots = 0
}

@globalActor
private actor Disk: ScheduledActor {
  static let shared = Disk()
  nonisolated let scheduler = SerialScheduler(name: "disk")
}

/// Without a handler a violation traps, and the message names both schedulers.
@Suite(.timeLimit(.minutes(5)))
struct ViolationTrapTests {
  @Test func readingAConfinedPropertyOnNoScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Shelf(on: SerialScheduler(name: "shelves")).items
    }
    expectSentence("“items”", "“Shelf”", "“shelves”", "no scheduler", in: result)
  }

  @Test func settingAConfinedPropertyOnNoScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Shelf(on: SerialScheduler(name: "shelves")).items = [1]
    }
    expectSentence("“items”", "“shelves”", "no scheduler", in: result)
  }

  @Test func changingAConfinedPropertyOnNoScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Shelf(on: SerialScheduler(name: "shelves")).labels["a", default: []].append(1)
    }
    expectSentence("“labels”", "“shelves”", "no scheduler", in: result)
  }

  @Test func readingAConfinedPropertyOnAnotherScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let shelf = Shelf(on: SerialScheduler(name: "shelves"))
      _ = try await SerialScheduler(name: "kitchen").run { shelf.items }
    }
    expectSentence("“items”", "“shelves”", "“kitchen”", in: result)
  }

  @Test func changingAConfinedPropertyOnAnotherSchedulersJob() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let shelf = Shelf(on: SerialScheduler(name: "shelves"))
      await Notes(on: SerialScheduler(name: "kitchen")).perform { shelf.items.append(1) }
    }
    expectSentence("“items”", "“shelves”", "“kitchen”", in: result)
  }

  @Test func touchingAConfinedPropertyOnMain() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let shelf = Shelf(on: SerialScheduler(name: "shelves"))
      await MainActor.run { shelf.items.append(1) }
    }
    expectSentence("“items”", "“shelves”", "“main”", in: result)
  }

  @Test func anObjectOnMainInAnEventOfAnotherScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let window = Window()
      try await SerialScheduler(name: "kitchen").run { window.title = "changed" }
    }
    expectSentence("“title”", "“Window”", "“main”", "“kitchen”", in: result)
  }

  @Test func fromWithinAWaitOnAnotherScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let shelf = Shelf(on: SerialScheduler(name: "shelves"))
      let other = SerialScheduler(name: "kitchen")
      // The shelf's scheduler is blocked meanwhile: this is not on it all the same.
      try await shelf.run { shelf in try other.wait { shelf.items.append(1) } }
    }
    expectSentence("“items”", "“shelves”", "“kitchen”", in: result)
  }

  @Test func touchingAScheduledObjectOnNoScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      SchedulableObject(Camera(), on: SerialScheduler(name: "photos")).object.shots += 1
    }
    expectSentence("“Camera”", "“photos”", "no scheduler", in: result)
  }

  @Test func touchingAScheduledObjectOnAnotherScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let camera = SchedulableObject(Camera(), on: SerialScheduler(name: "photos"))
      let kitchen = SerialScheduler(name: "kitchen")
      kitchen.queue.addOperation { camera.object.shots += 1 }
      await kitchen.drained()
    }
    expectSentence("“Camera”", "“photos”", "“kitchen”", in: result)
  }

  @Test func aScheduledObjectThatNamesNoSchedulerBelongsToMain() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = SchedulableObject(Camera()).object
    }
    expectSentence("“Camera”", "“main”", "no scheduler", in: result)
  }

  @Test func preconditionIsCurrentNamesBothAndWhatItWasTold() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let scheduler = SerialScheduler(name: "photos")
      try await SerialScheduler(name: "kitchen").run { scheduler.preconditionIsCurrent("Taking a picture") }
    }
    expectSentence("Taking a picture", "“photos”", "“kitchen”", "ViolationTests.swift", in: result)
  }

  @Test func preconditionIsCurrentOnNoScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      SerialScheduler(name: "photos").preconditionIsCurrent()
    }
    expectSentence("“photos”", "no scheduler", in: result)
  }

  @Test func assumingAnActorIsolatedOnNoScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let notes = Notes(on: SerialScheduler(name: "photos"))
      _ = await onThread { notes.assumeIsolated { _ in } }
    }
    expectSentence("“photos”", "no scheduler", in: result)
  }

  @Test func assumingAnActorIsolatedInAnEventOfAnotherScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let notes = Notes(on: SerialScheduler(name: "photos"))
      try await SerialScheduler(name: "kitchen").run { notes.assumeIsolated { _ in } }
    }
    expectSentence("“photos”", "“kitchen”", in: result)
  }

  @Test func assumingAnActorIsolatedInAnActorOfAnotherScheduler() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let notes = Notes(on: SerialScheduler(name: "photos"))
      await Notes(on: SerialScheduler(name: "kitchen")).perform { notes.assumeIsolated { _ in } }
    }
    expectSentence("“photos”", "“kitchen”", in: result)
  }

  @Test func assumingAGlobalActorIsolatedElsewhere() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try await SerialScheduler(name: "kitchen").run { Disk.shared.preconditionIsolated() }
    }
    expectSentence("“disk”", "“kitchen”", in: result)
  }

  @Test func assumingAnActorIsolatedOnMain() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let notes = Notes(on: SerialScheduler(name: "photos"))
      await MainActor.run { notes.assumeIsolated { _ in } }
    }
    expectSentence("“photos”", "“main”", in: result)
  }

  @Test func touchingAPropertyThatIsBeingChanged() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      @Sendable func change(_ items: inout [Int], of shelf: Shelf) { items.append(shelf.items.count) }
      try await Shelf(on: SerialScheduler(name: "shelves")).run { shelf in change(&shelf.items, of: shelf) }
    }
    expectSentence("“Shelf”", "being changed", in: result)
  }

  @Test func changingAPropertyThatIsBeingChanged() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try await Shelf(on: SerialScheduler(name: "shelves")).run { shelf in
        unsafe shelf.items.withUnsafeMutableBufferPointer { _ in shelf.items.append(1) }
      }
    }
    expectSentence("“Shelf”", "being changed", in: result)
  }

  @Test func replacingAPropertysStorageWhileItIsBeingChanged() async {
    final class Careless: Schedulable, @unchecked Sendable {
      let scheduler = SerialScheduler(name: "careless")
      @Confined var items = [1]
      func replace() { _items = Confined(wrappedValue: []) }
    }
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try await Careless().run { object in
        unsafe object.items.withUnsafeMutableBufferPointer { _ in object.replace() }
      }
    }
    expectSentence("replaced while it is being changed", in: result)
  }

  @Test func onTheSchedulerNothingIsSaid() async {
    await #expect(processExitsWith: .success) {
      let scheduler = SerialScheduler(name: "photos")
      let camera = SchedulableObject(Camera(), on: scheduler)
      let shelf = Shelf(on: scheduler)
      let notes = Notes(on: scheduler)
      let window = Window()
      let touch: @Sendable () -> Void = {
        camera.object.shots += 1
        shelf.items.append(1)
        scheduler.preconditionIsCurrent("Nothing")
        notes.assumeIsolated { _ in }
        notes.preconditionIsolated()
      }
      try await scheduler.run(touch)
      await notes.perform(touch)
      await Task(executorPreference: scheduler) { touch() }.value
      try await scheduler.queue.run(ResultOperation<Void> { touch() })
      try await SerialScheduler(name: "kitchen").run { try scheduler.wait(touch) }
      await MainActor.run { window.title = "changed" }
      try await Disk.shared.scheduler.run { Disk.shared.assertIsolated() }
      exit(try await shelf.run { $0.items.count } == 5 ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }
}
#endif
