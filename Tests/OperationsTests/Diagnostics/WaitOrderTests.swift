import Testing

@testable import Operations

@Suite struct WaitOrderTests {
  struct Case: Sendable {
    let waits: [[Int]]
    /// How many of those that item 0 waits for it needs, or nil for all.
    var needed: Int?
    var order: [Int] = []
    var cycles: [[Int]] = []
  }

  @Test(arguments: [
    // Everyone comes after all that it waits for, even if it is named twice.
    Case(waits: [[1, 2], [3], [3], []], order: [3, 1, 2, 0]),
    Case(waits: [[1, 1], []], order: [1, 0]),
    Case(waits: [[1, 1], []], needed: 1, order: [1, 0]),
    // A cycle is in the order of waiting, and who waits for it is not in it.
    Case(waits: [[1], [2], [0]], cycles: [[0, 1, 2]]),
    Case(waits: [[0]], cycles: [[0]]),
    Case(waits: [[1], [2], [3], [1], []], order: [4], cycles: [[1, 2, 3]]),
    // Cycles that have nothing in common are all found.
    Case(waits: [[1], [0], [3], [2, 0]], cycles: [[0, 1], [2, 3]]),
    // 0 needs any of 1, which waits for 0, and 2, which is free.
    Case(waits: [[1, 2], [0], []], needed: 1, order: [2, 0, 1]),
    Case(waits: [[1, 2], [0], []], order: [2], cycles: [[0, 1]]),
    // 0 needs two of 1, which waits for 0, and of 2 and 3, of which one waits for 0, too.
    Case(waits: [[1, 2, 3], [0], [], []], needed: 2, order: [2, 3, 0, 1]),
    Case(waits: [[1, 2, 3], [0], [0], []], needed: 2, order: [3], cycles: [[0, 1]]),
  ])
  func theOrderAndTheCycles(line: Case) {
    let order = WaitOrder(line.waits, needed: { $0 == 0 ? line.needed : nil })
    #expect(order.order == line.order && order.cycles == line.cycles, "\(order)")
  }

  @Test func whoNeedsAnyComesWithTheFirstInRank() {
    // 0 needs any of 1 and 2, which wait for 3 and 4.
    let waits = [[1, 2], [3], [4], [], []]
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }, rank: { $0 == 3 ? 1 : 0 }).order == [4, 2, 0, 3, 1])
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }, rank: { $0 == 4 ? 1 : 0 }).order == [3, 1, 0, 4, 2])
  }

  @Test func longChainsAndCyclesTakeNoStack() {
    let count = 50_000
    #expect(WaitOrder((0..<count).map { $0 + 1 < count ? [$0 + 1] : [] }).order.count == count)
    #expect(WaitOrder((0..<count).map { [($0 + 1) % count] }).cycles.first?.count == count)
  }
}
