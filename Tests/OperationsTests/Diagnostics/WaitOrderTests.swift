import Testing

@testable import Operations

@Suite struct WaitOrderTests {
  @Test func everyoneComesAfterAllThatItWaitsFor() {
    let waits = [[1, 2], [3], [3], []]
    let order = WaitOrder(waits)
    #expect(order.cycles.isEmpty)
    let places = Dictionary(uniqueKeysWithValues: zip(order.order, 0...))
    for (waiter, waited) in waits.enumerated() {
      for one in waited { #expect(places[one] ?? .max < places[waiter] ?? .min) }
    }
  }

  @Test func aCycleIsInTheOrderOfWaiting() {
    #expect(WaitOrder([[1], [2], [0]]).cycles == [[0, 1, 2]])
    #expect(WaitOrder([[0]]).cycles == [[0]])
  }

  @Test func whoWaitsForACycleIsNotInIt() {
    let order = WaitOrder([[1], [2], [3], [1], []])
    #expect(order.cycles == [[1, 2, 3]])
    #expect(order.order == [4])
  }

  @Test func circlesThatHaveNothingInCommonAreAllFound() {
    #expect(WaitOrder([[1], [0], [3], [2, 0]]).cycles == [[0, 1], [2, 3]])
  }

  @Test func oneOfSeveralIsEnoughForThoseThatNeedAny() {
    // 0 needs any of 1, which waits for 0, and 2, which is free.
    let waits = [[1, 2], [0], []]
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }).cycles.isEmpty)
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }).order == [2, 0, 1])
    #expect(WaitOrder(waits).cycles == [[0, 1]])
  }

  @Test func namedTwiceIsWaitedForOnce() {
    #expect(WaitOrder([[1, 1], []]).order == [1, 0])
    #expect(WaitOrder([[1, 1], []], needed: { $0 == 0 ? 1 : nil }).order == [1, 0])
  }

  @Test func twoOfSeveralMayBeNeeded() {
    // 0 needs two of 1, which waits for 0, and of 2 and 3, of which one waits for 0, too.
    #expect(WaitOrder([[1, 2, 3], [0], [], []], needed: { $0 == 0 ? 2 : nil }).order == [2, 3, 0, 1])
    #expect(WaitOrder([[1, 2, 3], [0], [0], []], needed: { $0 == 0 ? 2 : nil }).cycles == [[0, 1]])
  }

  @Test func whoNeedsAnyComesWithTheFirstInRank() {
    // 0 needs any of 1 and 2, which wait for 3 and 4.
    let waits = [[1, 2], [3], [4], [], []]
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }, rank: { $0 == 3 ? 1 : 0 }).order == [4, 2, 0, 3, 1])
    #expect(WaitOrder(waits, needed: { $0 == 0 ? 1 : nil }, rank: { $0 == 4 ? 1 : 0 }).order == [3, 1, 0, 4, 2])
  }

  @Test func longChainsAndCyclesTakeNoStack() {
    let count = 50_000
    let chain = (0..<count).map { $0 + 1 < count ? [$0 + 1] : [] }
    #expect(WaitOrder(chain).order.count == count)
    #expect(WaitOrder((0..<count).map { [($0 + 1) % count] }).cycles.first?.count == count)
  }
}
