import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ConfinedTests {
  private let scheduler = SerialScheduler(name: "home")

  @Test func itIsChangedInPlace() async throws {
    let isSame = try await Shelf(on: scheduler).run { shelf in
      shelf.items.reserveCapacity(100_000)
      let address = unsafe shelf.items.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      for index in 0..<100_000 { shelf.items.append(index) }
      shelf.items[5] += 1
      return unsafe shelf.items.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } == address
    }
    #expect(isSame)
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
    let (first, second) = (Shelf(on: scheduler), Shelf(on: scheduler))
    let contents = try await scheduler.run {
      second.items = [1, 2]
      swap(&first.items, &second.items)
      func label(_ labels: inout [String: [Int]]) { labels["items"] = first.items }
      label(&first.labels)
      return [first.items, first.labels["items", default: []], second.items]
    }
    #expect(contents == [[1, 2], [1, 2], []])
  }

  private final class Box: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    private let seen: Journal<Int>
    @Confined var tokens: [LiveCount.Token] = []

    init(on scheduler: SerialScheduler, _ seen: Journal<Int>) {
      self.scheduler = scheduler
      self.seen = seen
    }

    deinit { seen.write(_tokens.uncheckedValue.count) }
  }

  @Test func theLastValueIsThereInDeinitAndGoesWithTheObject() async throws {
    let (live, seen) = (LiveCount(), Journal<Int>())
    var box: Box? = Box(on: scheduler, seen)
    try await box?.run { $0.tokens = [LiveCount.Token(live), LiveCount.Token(live)] }
    await scheduler.drained()
    #expect(live.alive == 2)
    box = nil
    await live.none()
    #expect(seen.entries == [2])
  }
}
