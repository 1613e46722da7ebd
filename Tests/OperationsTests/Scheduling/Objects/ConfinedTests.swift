import Operations
import OperationsTestSupport
import Soak
import Testing

private class Base: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var name: String
  @Confined var next: String?
  @Confined var tokens: [LiveCount.Token]
  @Confined private(set) var lines = [0, 0]

  init(on scheduler: SerialScheduler, name: String, tokens: [LiveCount.Token] = []) {
    self.scheduler = scheduler
    self.name = name
    self.tokens = tokens
  }
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

  @Test func aPropertyHasTheValueItWasGivenInInitOnAnyThread() async throws {
    let shelf = await Task.detached { Shelf(on: scheduler, labels: ["a": [1]]) }.value
    #expect(try await shelf.run { $0.labels } == ["a": [1]])
    #expect(try await shelf.run { $0.items } == [])
    let derived = Derived(on: scheduler)
    let (name, next, extra) = try await scheduler.run { (derived.name, derived.next, derived.extra) }
    #expect(name == "derived" && next == nil && extra == 1)
  }

  @Test func itIsChangedInPlace() async throws {
    let isSame = try await Shelf(on: scheduler).run { shelf in
      shelf.items.reserveCapacity(100_000)
      let address = unsafe shelf.items.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      for index in 0..<100_000 { shelf.items.append(index) }
      shelf.items[5] += 1
      shelf.items.swapAt(1, 2)
      shelf.items.removeLast()
      return unsafe shelf.items.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } == address
    }
    #expect(isSame)
  }

  @Test func whatIsWithinIsChangedInPlace() async throws {
    let isSame = try await Shelf(on: scheduler, labels: ["a": []]).run { shelf in
      shelf.labels["a"]!.reserveCapacity(1000)
      let address = unsafe shelf.labels["a"]!.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      for index in 0..<1000 { shelf.labels["a", default: []].append(index) }
      return unsafe shelf.labels["a"]!.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } == address
    }
    #expect(isSame)
  }

  @Test func whoIteratesOrCopiesIsNotDisturbedByChanges() async throws {
    let (copy, after) = try await Shelf(on: scheduler).run { shelf in
      shelf.items = [1, 2, 3]
      let copy = shelf.items
      for item in shelf.items { shelf.items.append(item * 10) }
      return (copy, shelf.items)
    }
    #expect(copy == [1, 2, 3] && after == [1, 2, 3, 10, 20, 30])
  }

  @Test func afterAChangeThatThrewItCanBeTouched() async throws {
    @Sendable func fail(_ items: inout [Int]) throws {
      items.append(1)
      throw TestError("failed")
    }
    let shelf = Shelf(on: scheduler)
    await #expect(throws: TestError("failed")) { try await shelf.run { try fail(&$0.items) } }
    shelf.schedule { $0.items.append(2) }
    #expect(try await shelf.run { $0.items } == [1, 2])
  }

  @Test func twoPropertiesAndTwoObjectsMayBeChangedAtOnce() async throws {
    let first = Base(on: scheduler, name: "first")
    let second = Base(on: scheduler, name: "second")
    @Sendable func exchange(_ a: inout String, _ b: inout String) { (a, b) = (b, a) }
    let names = try await scheduler.run {
      exchange(&first.name, &second.name)
      func rename(_ name: inout String) { name += "\(first.lines.count)" }
      rename(&first.name)
      return [first.name, second.name]
    }
    #expect(names == ["second2", "first"])
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
    let live = LiveCount()
    try await scheduler.run {
      let object = Base(on: scheduler, name: "holder", tokens: [LiveCount.Token(live)])
      object.tokens = [LiveCount.Token(live)]
      #expect(live.alive == 1)
    }
    await live.none()
  }
}
