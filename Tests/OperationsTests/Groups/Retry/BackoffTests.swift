import Operations
import Testing

struct BackoffTests {
  @Test func noneAndConstant() {
    #expect(Backoff.immediate.delay(after: 1) == .zero)
    #expect((1...5).map { Backoff.constant(.seconds(2)).delay(after: $0) } == Array(repeating: .seconds(2), count: 5))
  }

  @Test func exponentialUpToTheCap() {
    let backoff = Backoff.exponential(initial: .milliseconds(100), cap: .seconds(1))
    #expect(
      (1...6).map(backoff.delay) == [
        .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800), .seconds(1), .seconds(1),
      ]
    )
    #expect(backoff.delay(after: 100_000) == .seconds(1))
    #expect(Backoff.exponential(initial: .zero, cap: .seconds(1)).delay(after: 100_000) == .zero)
    #expect(
      Backoff.exponential(initial: .seconds(9), multiplier: 0.5, cap: .seconds(20)).delay(after: 2) == .seconds(4.5)
    )
    #expect(Backoff.exponential(initial: .seconds(9), cap: .seconds(2)).delay(after: 1) == .seconds(2))
  }

  @Test func jitterTakesAwayItsPartAtMost() {
    let backoff = Backoff.exponential(initial: .seconds(8), cap: .seconds(8), jitter: 0.5)
    let delays = (0..<500).map { _ in backoff.delay(after: 1) }
    #expect(delays.allSatisfy { $0 >= .seconds(4) && $0 <= .seconds(8) })
    #expect((delays.min() ?? .zero) < .seconds(5) && (delays.max() ?? .zero) > .seconds(7))
  }

  @Test func oneOfYourOwn() {
    #expect(Backoff { .seconds($0 * $0) }.delay(after: 3) == .seconds(9))
  }
}
