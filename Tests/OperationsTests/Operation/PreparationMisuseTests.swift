#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Mistakes with values, conditions, time and progress.
struct PreparationMisuseTests {
  @Test func aConditionAfterTheStart() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = AsyncBlockOperation { _ in }.named("late")
      operation.start()
      operation.addCondition(OperationCondition(name: "signed in") { _ in })
    }
    expectSentence("“late” has been started", "too late for its condition “signed in”", "before", in: result)
  }

  @Test func passingToItself() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = TransformOperation { (value: Int) in value }.named("narcissus")
      operation.pass(to: operation)
    }
    expectSentence("“narcissus” cannot wait for itself", in: result)
  }

  @Test func passingToOneThatHasBeenStarted() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let consumer = AsyncBlockOperation { _ in }.named("consumer")
      consumer.start()
      ResultOperation { 1 }.named("producer").pass(to: consumer) { _, _ in }
    }
    expectSentence("“consumer” has been started and can no longer wait for “producer”", in: result)
  }

  @Test func aTaskWithNothingToRun() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = TaskOperation<Int>().named("idle")
      OperationQueue().addOperation(operation)
      await operation.finished()
    }
    expectSentence("“idle” has nothing to run", "override run()", in: result)
  }

  @Test func aTransformationOfNothing() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = TransformOperation<Int, Int>().named("idle")
      operation.input = 1
      OperationQueue().addOperation(operation)
      await operation.finished()
    }
    expectSentence("“idle” has nothing to do", "Override transform(_:)", in: result)
  }

  @Test func noAttemptAtAll() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = RetryOperation(attempts: 0) { _ in ResultOperation { 1 } }
    }
    expectSentence("cannot try 0 times", "1 attempt or more", in: result)
  }

  @Test func theSameOperationForEachAttempt() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let attempt = ResultOperation<Int> { throw TestError("again") }.named("attempt")
      let retry = RetryOperation(attempts: 2) { _ in attempt }
      OperationQueue().addOperation(retry)
      await retry.finished()
    }
    expectSentence("“attempt” has been started already", "make a new one", in: result)
  }

  @Test func aBackoffThatGoesBackInTime() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Backoff.constant(.seconds(-1))
    }
    expectSentence("A backoff cannot wait -1.0 seconds", in: result)
  }

  @Test func anExponentialBackoffThatGoesBackInTime() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Backoff.exponential(initial: .seconds(1), cap: .seconds(-1))
    }
    expectSentence("A backoff waits from zero up", in: result)
  }

  @Test func aBackoffThatMultipliesByNothing() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Backoff.exponential(initial: .seconds(1), multiplier: .nan, cap: .seconds(1))
    }
    expectSentence("multiplier is more than zero, not nan", in: result)
  }

  @Test func aJitterOfMoreThanAll() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Backoff.exponential(initial: .seconds(1), cap: .seconds(1), jitter: 1.5)
    }
    expectSentence("jitter is a part of the pause, from 0 to 1, not 1.5", in: result)
  }

  @Test func aNegativeWeight() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      AsyncOperation().named("light").progressWeight = -1
    }
    expectSentence("“light” cannot count -1 in a progress", in: result)
  }

  @Test func aWeightThatComesTooLate() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let member = AsyncOperation().named("member")
      let group = GroupOperation([member])
      withExtendedLifetime(group) { member.progressWeight = 2 }
    }
    expectSentence("“member” is in a group, which has taken its weight", in: result)
  }

  @Test func aClockThatGoesBack() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      ManualClock().advance(by: .seconds(-1))
    }
    expectSentence("A clock cannot go back", in: result)
  }
}
#endif
