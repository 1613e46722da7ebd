import Operations
import OperationsTestSupport
import Soak
import Testing

private class Base: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var name = "base"
  @Confined var next: String?
  @Confined private(set) var lines = [0, 0]

  init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
}

private final class Derived: Base, @unchecked Sendable {
  @Confined var tokens: [LiveCount.Token]
  private let atTheEnd: @Sendable (Int) -> Void

  init(on scheduler: SerialScheduler, tokens: [LiveCount.Token], atTheEnd: @escaping @Sendable (Int) -> Void) {
    self.atTheEnd = atTheEnd
    self.tokens = tokens
    super.init(on: scheduler)
  }

  deinit { atTheEnd(_tokens.uncheckedValue.count) }
}

@Suite(.timeLimit(.minutes(5)))
struct ConfinedTests {
  private let scheduler = SerialScheduler(name: "home")

  @Test func aPropertyHasTheValueItWasGivenInInitOnAnyThread() async throws {
    let shelf = await Task.detached { Shelf(on: scheduler, labels: ["a": [1]]) }.value
    #expect(try await shelf.run { $0.labels } == ["a": [1]])
    #expect(try await shelf.run { $0.items } == [])
    let base = Base(on: scheduler)
    #expect(try await base.run { [$0.name, $0.next] } == ["base", nil])
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
    let (first, second) = (Base(on: scheduler), Base(on: scheduler))
    let names = try await scheduler.run {
      second.name = "second"
      swap(&first.name, &second.name)
      func rename(_ name: inout String) { name += "\(first.lines.count)" }
      rename(&first.name)
      return [first.name, second.name]
    }
    #expect(names == ["second2", "base"])
  }

  @Test func theLastValueIsThereInDeinitAndGoesWithTheObject() async throws {
    let (live, seen) = (LiveCount(), Journal<Int>())
    var object: Derived? = Derived(on: scheduler, tokens: [LiveCount.Token(live)]) { seen.write($0) }
    try await object?.run { $0.tokens = [LiveCount.Token(live), LiveCount.Token(live)] }
    await scheduler.drained()
    #expect(live.alive == 2)
    object = nil
    await live.none()
    #expect(seen.entries == [2])
  }
}
