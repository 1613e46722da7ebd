import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Notices when it is changed by way of a copy.
private struct Original {
  private final class Body {}
  private var body = Body()
  private(set) var copies = 0
  private(set) var changes = 0

  mutating func change() {
    if !isKnownUniquelyReferenced(&body) {
      copies += 1
      body = Body()
    }
    changes += 1
  }

  mutating func fail() throws {
    change()
    throw TestError("failed")
  }
}

private class Base: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var original = Original()
  @Confined var name: String
  @Confined var next: String?
  @Confined private(set) var lines: [[Int]] = [[], []]

  init(on scheduler: SerialScheduler, name: String) {
    self.scheduler = scheduler
    self.name = name
    // Nobody else has the object yet, but all of it is there: it is on its scheduler or not.
  }

  func addLine() { lines.append([]) }
  func extend(_ index: Int) { lines[index].append(index) }
}

private final class Derived: Base, @unchecked Sendable {
  @Confined var extra = 1
  private let atTheEnd: @Sendable (Int) -> Void

  init(on scheduler: SerialScheduler, atTheEnd: @escaping @Sendable (Int) -> Void = { _ in }) {
    self.atTheEnd = atTheEnd
    super.init(on: scheduler, name: "derived")
  }

  deinit { atTheEnd(_extra.uncheckedValue) }
}

@Suite(.timeLimit(.minutes(5)))
struct ConfinedTests {
  private let scheduler = SerialScheduler(name: "home")

  @Test func aPropertyHasTheValueItWasGivenInInit() async throws {
    let shelf = Shelf(on: scheduler, labels: ["a": [1]])
    #expect(try await shelf.run { $0.labels } == ["a": [1]])
    #expect(try await shelf.run { $0.items } == [])
    let derived = Derived(on: scheduler)
    let (name, next, extra) = try await scheduler.run { (derived.name, derived.next, derived.extra) }
    #expect(name == "derived" && next == nil && extra == 1)
  }

  @Test func itIsChangedInPlace() async throws {
    let object = Base(on: scheduler, name: "base")
    let (copies, changes) = try await object.run { object in
      for _ in 0..<1000 { object.original.change() }
      return (object.original.copies, object.original.changes)
    }
    #expect(copies == 0 && changes == 1000)
  }

  @Test func anArrayKeepsItsBuffer() async throws {
    let shelf = Shelf(on: scheduler)
    let isSame = try await shelf.run { shelf in
      shelf.items.reserveCapacity(100_000)
      let address = unsafe shelf.items.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      for index in 0..<100_000 { shelf.items.append(index) }
      shelf.items[5] += 1
      shelf.items.swapAt(1, 2)
      shelf.items.removeLast()
      return unsafe shelf.items.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } == address
    }
    #expect(isSame)
    #expect(try await shelf.run { $0.items.count } == 99_999)
  }

  @Test func whatIsWithinIsChangedInPlace() async throws {
    let shelf = Shelf(on: scheduler)
    let isSame = try await shelf.run { shelf in
      shelf.labels["a"] = []
      shelf.labels["a"]!.reserveCapacity(1000)
      let address = unsafe shelf.labels["a"]!.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      for index in 0..<1000 { shelf.labels["a", default: []].append(index) }
      return unsafe shelf.labels["a"]!.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } == address
    }
    #expect(isSame)
  }

  @Test func whoIteratesIsNotDisturbedByChanges() async throws {
    let shelf = Shelf(on: scheduler)
    let (seen, after) = try await shelf.run { shelf in
      shelf.items = [1, 2, 3]
      var seen: [Int] = []
      for item in shelf.items {
        shelf.items.append(item * 10)
        seen.append(item)
      }
      return (seen, shelf.items)
    }
    #expect(seen == [1, 2, 3] && after == [1, 2, 3, 10, 20, 30])
  }

  @Test func aCopyThatWasTakenStaysAsItWas() async throws {
    let shelf = Shelf(on: scheduler)
    let before = try await shelf.run { shelf in
      shelf.items = [1]
      let copy = shelf.items
      shelf.items.append(2)
      return copy
    }
    #expect(before == [1])
    #expect(try await shelf.run { $0.items } == [1, 2])
  }

  @Test func afterAChangeThatThrewItCanBeTouched() async throws {
    let object = Base(on: scheduler, name: "base")
    await #expect(throws: TestError("failed")) { try await object.run { try $0.original.fail() } }
    #expect(try await object.run { $0.original.changes } == 1)
    let changes = try await object.run { object in
      object.original.change()
      return object.original.changes
    }
    #expect(changes == 2)
  }

  @Test func twoPropertiesAndTwoObjectsMayBeChangedAtOnce() async throws {
    let first = Base(on: scheduler, name: "first")
    let second = Base(on: scheduler, name: "second")
    @Sendable func exchange(_ a: inout String, _ b: inout String) { (a, b) = (b, a) }
    let names = try await scheduler.run {
      exchange(&first.name, &second.name)
      func rename(_ name: inout String) { name += "\(first.original.changes)" }
      rename(&first.name)
      return [first.name, second.name]
    }
    #expect(names == ["second0", "first"])
  }

  @Test func aSetterThatIsPrivateIsUsedByTheClass() async throws {
    let object = Base(on: scheduler, name: "base")
    let lines = try await object.run { object in
      object.addLine()
      object.extend(2)
      return object.lines
    }
    #expect(lines == [[], [], [2]])
  }

  @Test func atTheEndTheLastValueIsThere() async throws {
    let seen = Journal<Int>()
    var object: Derived? = Derived(on: scheduler) { seen.write($0) }
    try await object?.run { $0.extra = 9 }
    await scheduler.drained()
    object = nil
    await seen.reaches(1)
    #expect(seen.entries == [9])
  }

  @Test func theValueGoesWithTheObject() async throws {
    final class Holder: Schedulable, @unchecked Sendable {
      let scheduler: SerialScheduler
      @Confined var token: LiveCount.Token?
      init(on scheduler: SerialScheduler, _ live: LiveCount) {
        self.scheduler = scheduler
        token = LiveCount.Token(live)
      }
    }
    let live = LiveCount()
    let scheduler = scheduler
    try await scheduler.run {
      let holder = Holder(on: scheduler, live)
      holder.token = LiveCount.Token(live)
      #expect(live.alive == 1)
    }
    await live.none()
  }

  @Test func inInitAPropertyMayBeGivenItsValueAnywhere() async throws {
    let live = LiveCount()
    let shelf = await Task.detached { [scheduler] in Shelf(on: scheduler, labels: ["off": [1]]) }.value
    #expect(try await shelf.run { $0.labels["off"] } == [1])
    #expect(live.alive == 0)
  }

  @Test func anObjectOnMainIsAccessibleOnTheMainActor() async throws {
    let window = Window()
    let title = await MainActor.run {
      window.title += "!"
      return window.title
    }
    #expect(title == "untitled!")
    #expect(try await window.run { $0.title } == "untitled!")
  }
}
