#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Operations

private final class Camera {}

private func shelf() -> Shelf { Shelf(on: SerialScheduler(name: "shelves")) }
private func notes() -> Notes { Notes(on: SerialScheduler(name: "photos")) }

/// Runs `body` in an event of another scheduler.
private func onKitchen(_ body: @escaping @Sendable () throws -> Void) async throws {
  try await SerialScheduler(name: "kitchen").run(body)
}

extension MisuseTests {
  /// Without a handler a violation traps, and the message names both schedulers.
  static let violations = [
    Mistake("reading an inherited property", says: "“items” of “Lowest”", "“drawers”", "no scheduler") {
      class Drawer: Schedulable, @unchecked Sendable {
        let scheduler = SerialScheduler(name: "drawers")
        @Confined var items = [1]
      }
      final class Lowest: Drawer, @unchecked Sendable {}
      _ = Lowest().items
    },
    Mistake("an object on main, changed elsewhere", says: "“title”", "“Window”", "“main”", "“kitchen”") {
      final class Window: Schedulable, @unchecked Sendable {
        let scheduler = SerialScheduler.main
        @Confined var title = "untitled"
      }
      let window = Window()
      try await onKitchen { window.title = "changed" }
    },
    Mistake("reading while it is being changed", says: "“Shelf”", "being changed") {
      @Sendable func change(_ items: inout [Int], of shelf: Shelf) { items.append(shelf.items.count) }
      try await shelf().run { shelf in change(&shelf.items, of: shelf) }
    },
    Mistake("changing while it is being changed", says: "“Shelf”", "being changed") {
      try await shelf().run { shelf in
        unsafe shelf.items.withUnsafeMutableBufferPointer { _ in shelf.items.append(1) }
      }
    },
    Mistake("replacing the storage while it is being changed", says: "replaced while it is being changed") {
      final class Careless: Schedulable, @unchecked Sendable {
        let scheduler = SerialScheduler(name: "careless")
        @Confined var items = [1]
        func replace() { _items = Confined(wrappedValue: []) }
      }
      try await Careless().run { object in
        unsafe object.items.withUnsafeMutableBufferPointer { _ in object.replace() }
      }
    },
    Mistake("an object without a scheduler belongs to main", says: "“Camera”", "“main”", "no scheduler") {
      _ = SchedulableObject(Camera()).object
    },
    Mistake("a precondition", says: "A picture", "“photos”", "“kitchen”", "ViolationMistakes.swift") {
      let scheduler = SerialScheduler(name: "photos")
      try await onKitchen { scheduler.preconditionIsCurrent("A picture") }
    },
    Mistake(
      "an actor, assumed on no scheduler",
      says: "“Notes”",
      "“photos”",
      "no scheduler",
      "ViolationMistakes.swift",
      with: notes()
    ) { notes in
      _ = await onThread { notes.assumeIsolated { _ in } }
    },
    Mistake("an actor, assumed in one of another scheduler", says: "“Notes”", "“photos”", "“kitchen”", with: notes()) {
      notes in
      await Notes(on: SerialScheduler(name: "kitchen")).perform { notes.assumeIsolated { _ in } }
    },
  ]
}
#endif
