import Testing

@testable import Operations

@Suite struct WaitOrderTests {
  struct Case: Sendable {
    let waits: [[Int]]
    /// The number of its waits that item 0 needs, or nil for all.
    var needed: Int?
    var order: [Int] = []
    var cycles: [[Int]] = []
  }

  @Test(arguments: [
    // An item comes after all that it waits for, even if one is named twice.
    Case(waits: [[1, 2], [3], [3], []], order: [3, 1, 2, 0]),
    Case(waits: [[1, 1], []], order: [1, 0]),
    Case(waits: [[1, 1], []], needed: 1, order: [1, 0]),
    // A cycle is in the order of waiting, without the items that only wait for it.
    Case(waits: [[1], [2], [0]], cycles: [[0, 1, 2]]),
    Case(waits: [[0]], cycles: [[0]]),
    Case(waits: [[1], [2], [3], [1], []], order: [4], cycles: [[1, 2, 3]]),
    // Separate cycles are all found.
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

  @Test func anItemThatNeedsAny_comesWithTheFirstInRank() {
    // 0 needs any of 1 and 2, which wait for 3 and 4.
    let waits = [[1, 2], [3], [4], [], []]
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }, rank: { $0 == 3 ? 1 : 0 }).order == [4, 2, 0, 3, 1])
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }, rank: { $0 == 4 ? 1 : 0 }).order == [3, 1, 0, 4, 2])
  }
}
