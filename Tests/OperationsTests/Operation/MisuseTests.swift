#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Mistakes in a program end it, with a sentence that names the operation and says what to do.
struct MisuseTests {
  @Test func selfDependency() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = AsyncOperation().named("ouroboros")
      operation ==> operation
    }
    expectSentence("“ouroboros” cannot wait for itself", "another", in: result)
  }

  @Test func selfDependencyOfAPlainOperation() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = BlockOperation {}.named("plain")
      operation ==> operation
    }
    expectSentence("“plain” cannot wait for itself", in: result)
  }

  @Test func startByHandBeforeItIsReady() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let first = AsyncOperation().named("first")
      let second = AsyncBlockOperation { _ in print("work was done") }.named("second")
      first ==> second
      second.start()
    }
    expectSentence("“second” is not ready: it waits for “first”", "Add it to a queue", in: result)
  }

  @Test func startTwice() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = AsyncBlockOperation { _ in }.named("held")
      operation.start()
      operation.start()
    }
    expectSentence("“held” has been started before", "make a new one", in: result)
  }

  @Test func dependencyAddedAfterTheStart() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = AsyncBlockOperation { _ in }.named("late")
      operation.start()
      AsyncOperation().named("other") ==> operation
    }
    expectSentence("“late” has been started and can no longer wait for “other”", "before", in: result)
  }

  @Test func aPlainOperationTwiceInOneCall() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = BlockOperation {}.named("twice")
      OperationQueue().addOperations([operation, AsyncOperation(), operation])
    }
    expectSentence("“twice” is in this call already and cannot be added", "make a new one", in: result)
  }

  @Test func aPlainOperationThatHasBeenStarted() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = BlockOperation {}.named("late")
      operation.start()
      OperationQueue().addOperations([operation])
    }
    expectSentence("“late” has been started already and cannot be added", "make a new one", in: result)
  }

  @Test func enqueuedTwice() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let queue = OperationQueue()
      queue.isSuspended = true
      let operation = AsyncOperation().named("twice")
      queue.addOperation(operation)
      queue.addOperation(operation)
    }
    expectSentence("“twice” is in a queue already", "make a new one", in: result)
  }

  @Test func enqueuedThoughExecuting() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let operation = AsyncBlockOperation { _ in }.named("busy")
      operation.start()
      OperationQueue().addOperation(operation)
    }
    expectSentence("“busy” has been started already", in: result)
  }

  @Test(arguments: ["executing", "finished", "other group", "queue", "twice", "plain twice", "plain finished"])
  func addedToAGroupThoughNotFree(_ obstacle: String) async {
    // Exit tests capture nothing, so each case has its own.
    let result: ExitTest.Result?
    let sentence: String
    switch obstacle {
    case "executing":
      sentence = "“member” has been started already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let member = AsyncBlockOperation { _ in }.named("member")
        member.start()
        GroupOperation().addOperation(member)
      }
    case "finished":
      sentence = "“member” has been started already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let member = AsyncOperation().named("member")
        member.start()
        GroupOperation().addOperation(member)
      }
    case "other group":
      sentence = "“member” is in a group already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let member = AsyncOperation().named("member")
        let group = GroupOperation([member])
        GroupOperation().addOperation(member)
        withExtendedLifetime(group) {}
      }
    case "queue":
      sentence = "“member” is in a queue already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let queue = OperationQueue()
        queue.isSuspended = true
        let member = AsyncOperation().named("member")
        queue.addOperation(member)
        GroupOperation().addOperation(member)
      }
    case "twice":
      sentence = "“member” is in this group already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let member = AsyncOperation().named("member")
        GroupOperation([member]).addOperation(member)
      }
    case "plain twice":
      sentence = "“member” is in this group already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let member = BlockOperation {}.named("member")
        GroupOperation([member]).addOperation(member)
      }
    default:
      sentence = "“member” has been started already"
      result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let member = BlockOperation {}.named("member")
        member.start()
        GroupOperation().addOperation(member)
      }
    }
    expectSentence(sentence, "make a new one", in: result)
  }

  @Test func memberStartedByHand() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let member = AsyncOperation().named("member")
      let group = GroupOperation([member])
      withExtendedLifetime(group) { member.start() }
    }
    expectSentence("“member” is a member of a group, which starts it", in: result)
  }

  @Test func addedToAGroupThatHasFinishedByItself() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let group = GroupOperation([AsyncOperation()]).named("Import")
      OperationQueue().addOperation(group)
      await group.finished()
      group.addOperation(AsyncOperation().named("late"))
    }
    expectSentence("“Import” has finished and takes no more members", "“late”", "new group", in: result)
  }

  @Test func aGroupInsideItself() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let outer = GroupOperation().named("outer")
      let inner = GroupOperation().named("inner")
      outer.addOperation(inner)
      inner.addOperation(outer)
    }
    expectSentence("“outer” cannot be a member of itself", in: result)
  }

  @Test func aNegativeLimit() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      GroupOperation().named("Import").maxConcurrentOperationCount = -2
    }
    expectSentence("“Import” cannot run -2 members at once", "defaultMaxConcurrentOperationCount", in: result)
  }

  @Test func anEmptyAggregate() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = AggregateError([])
    }
    expectSentence("An AggregateError needs a failure", in: result)
  }
}
#endif
