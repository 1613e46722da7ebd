import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Blocking until something has been run on a scheduler.
@Suite(.timeLimit(.minutes(5)))
struct WaitContractTests {
  private let a = SerialScheduler(name: "A")
  private let b = SerialScheduler(name: "B")
  private let c = SerialScheduler(name: "C")
  private let journal = Journal<String>()

  @Test func itReturnsTheValue() async throws {
    let a = a
    let (value, isCurrent) = try await onThread { try a.wait { (42, a.isCurrent) } }.get()
    #expect(value == 42 && isCurrent)
  }

  @Test func itThrowsTheBodysError() async {
    let a = a
    let result = await onThread { try a.wait { throw TestError("broken") } }
    #expect(throws: TestError("broken")) { try result.get() }
  }

  @Test func itComesAfterWhatWasScheduledBefore() async throws {
    let (a, journal) = (a, journal)
    for index in 0..<200 { a.schedule { journal.write("\(index)") } }
    #expect(try await onThread { try a.wait { journal.count } }.get() == 200)
  }

  @Test func onItsOwnSchedulerItRunsTheBodyAtOnce() async throws {
    let (a, journal) = (a, journal)
    let end = await a.held()
    a.schedule {
      try? a.wait { journal.write("body") }
      journal.write("event")
    }
    a.schedule { journal.write("queued") }
    end.open()
    await journal.reaches(3)
    #expect(journal.entries == ["body", "event", "queued"])
    #expect(try await a.run { try a.wait { try a.wait { 3 } } } == 3)
    await #expect(throws: TestError("broken")) { try await a.run { try a.wait { throw TestError("broken") } } }
  }

  @Test func inAJobAndAnOperationOfItsOwnSchedulerItRunsTheBodyAtOnce() async throws {
    let (a, journal) = (a, journal)
    #expect(try await Notes(on: a).perform { try a.wait { 1 } } == 1)
    a.queue.addOperation { journal.write((try? a.wait { "operation" }) ?? "") }
    await journal.reaches(1)
    #expect(journal.entries == ["operation"])
    #expect(try await MainActor.run { try SerialScheduler.main.wait { 2 } } == 2)
  }

  @Test func oneThatHasNotBegunInTimeNeverRuns() async {
    let (a, journal) = (a, journal)
    let live = LiveCount()
    let end = await a.held()
    let result = await onThread { [token = LiveCount.Token(live)] in
      try a.wait(timeout: .milliseconds(20)) { withExtendedLifetime(token) { journal.write("ran") } }
    }
    #expect(result.code == .timedOut)
    #expect(result.message.contains("“A”"))
    end.open()
    await a.drained()
    #expect(journal.entries.isEmpty)
    await live.none()
  }

  @Test(arguments: [Duration.zero, .seconds(-1)])
  func withNoTimeAtAllItEndsAtOnce(_ timeout: Duration) async {
    let (a, journal) = (a, journal)
    let end = await a.held()
    let result = await onThread { try a.wait(timeout: timeout) { journal.write("ran") } }
    #expect(result.code == .timedOut)
    end.open()
    await a.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func oneThatHasBegunGoesOnToItsEndAfterTheTimeout() async {
    let (a, journal) = (a, journal)
    let end = Gate()
    let result = await onThread {
      try a.wait(timeout: .milliseconds(50)) {
        end.pass()
        journal.write("ended")
      }
    }
    #expect(result.code == .timedOut)
    #expect(journal.entries.isEmpty)
    end.open()
    await a.drained()
    // On a slow machine it had not begun.
    #expect(journal.entries == (result.message.contains("still running") ? ["ended"] : []))
  }

  @Test func withTimeEnoughItReturnsTheValue() async throws {
    let a = a
    #expect(try await onThread { try a.wait(timeout: .seconds(50)) { 5 } }.get() == 5)
    #expect(try await onThread { try a.wait(timeout: .seconds(Int64.max)) { 6 } }.get() == 6)
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func afterAShutdownItThrows(_ mode: SerialScheduler.ShutdownMode) async {
    let (a, journal) = (a, journal)
    a.shutDown(mode)
    let result = await onThread { try a.wait { journal.write("ran") } }
    #expect(result.code == .shutDown && result.message.contains("A"))
    #expect(journal.entries.isEmpty)
  }

  @Test func theMainThreadMayWait() async throws {
    let a = a
    #expect(try await MainActor.run { try a.wait { 7 } } == 7)
  }

  @Test func othersMayWaitForTheMainThread() async throws {
    let a = a
    #expect(try await onThread { try SerialScheduler.main.wait { MainActor.assumeIsolated { 8 } } }.get() == 8)
    #expect(try await a.run { try SerialScheduler.main.wait { MainActor.assumeIsolated { 9 } } } == 9)
  }

  @Test func manyThreadsMayWaitAtOnce() async {
    let (a, b) = (a, b)
    let sum = Journal<Int>()
    await onThreads(4) { thread in
      for index in 0..<500 {
        let target = (index + thread).isMultiple(of: 2) ? a : b
        if let value = try? target.wait({ 1 }) { sum.write(value) }
      }
    }
    #expect(sum.count == 2000)
  }

  @Test func anObjectIsHandedToItsBody() async throws {
    let shelf = Shelf(on: a)
    let object = SchedulableObject([1, 2], on: b)
    let counts = try await onThread {
      try shelf.wait { shelf in shelf.items.append(1) }
      return (try shelf.wait { $0.items.count }, try object.wait { $0.count })
    }.get()
    #expect(counts == (1, 2))
  }

  // MARK: Waiting for each other

  @Test func aWaitsForBWhichWaitsForA() async throws {
    let (a, b) = (a, b)
    let text = try await a.run { try b.wait { try "b" + a.wait { "a" } } }
    #expect(text == "ba")
  }

  @Test func aWaitsForBWhichWaitsForCWhichWaitsForA() async throws {
    let (a, b, c) = (a, b, c)
    let text = try await a.run { try b.wait { try "b" + c.wait { try "c" + a.wait { "a" } } } }
    #expect(text == "bca")
  }

  @Test func thereAndBackTwice() async throws {
    let (a, b) = (a, b)
    let text = try await a.run {
      try b.wait { try "b" + a.wait { try "a" + b.wait { try "b" + a.wait { "a" } } } }
    }
    #expect(text == "baba")
  }

  @Test func severalTimesInARow() async throws {
    let (a, b) = (a, b)
    let count = try await a.run {
      var count = 0
      for _ in 0..<100 { count += try b.wait { try a.wait { 1 } + a.wait { 1 } } }
      return count
    }
    #expect(count == 200)
  }

  @Test func aThreadAnOperationOrMainMayBeginTheChain() async throws {
    let (a, b, journal) = (a, b, journal)
    #expect(try await onThread { try a.wait { try b.wait { try a.wait { 1 } } } }.get() == 1)
    a.queue.addOperation { journal.write((try? b.wait { try a.wait { "operation" } }) ?? "failed") }
    SerialScheduler.main.schedule {
      journal.write((try? b.wait { try SerialScheduler.main.wait { "main" } }) ?? "failed")
    }
    await journal.reaches(2)
    #expect(Set(journal.entries) == ["operation", "main"])
  }

  @Test func anErrorComesBackThroughTheChain() async throws {
    let (a, b) = (a, b)
    await #expect(throws: TestError("inner")) {
      try await a.run { try b.wait { try a.wait { throw TestError("inner") } } }
    }
    #expect(try await a.run { 1 } + b.run { 2 } == 3)
  }

  @Test func nothingUnrelatedRunsInTheMiddle() async throws {
    let (a, b, journal) = (a, b, journal)
    let notes = Notes(on: a, journal)
    let other = Gate()
    let end = await a.held()
    a.schedule {
      journal.write("begin")
      try? b.wait {
        // It comes to A's line while A waits, by every way in.
        a.schedule { journal.write("event") }
        a.queue.addOperation { journal.write("operation") }
        immediately { await notes.note("job") }
        Thread.detachNewThread {
          other.open()
          try? a.wait { journal.write("other wait") }
        }
        other.pass()
        try? a.wait { journal.write("inner") }
        try? a.wait { journal.write("inner again") }
      }
      journal.write("end")
    }
    a.schedule { journal.write("earlier event") }
    end.open()
    await journal.reaches(9)
    #expect(journal.entries.prefix(5) == ["begin", "inner", "inner again", "end", "earlier event"])
    #expect(journal.entries.filter { ["event", "operation", "job"].contains($0) } == ["event", "operation", "job"])
    #expect(journal.entries.contains("other wait"))
  }

  @Test func whoHasGivenUpWaitingIsComeToWhenItIsFree() async {
    let (a, b, journal) = (a, b, journal)
    let hasGivenUp = Gate()
    let isAllowedToEnd = Gate()
    a.schedule {
      let result = Result {
        try b.wait(timeout: .milliseconds(20)) {
          hasGivenUp.pass()
          let inner = Result { try a.wait { journal.write("inner") } }
          journal.write("inner \((try? inner.get()) == nil ? "failed" : "done")")
        }
      }
      journal.write(result.code == .timedOut ? "gave up" : "?")
      hasGivenUp.open()
      isAllowedToEnd.pass()
      journal.write("end")
    }
    await journal.reaches(1)
    isAllowedToEnd.open()
    await a.drained()
    await b.drained()
    await a.drained()
    // If B had not begun in time, its part is not run at all.
    #expect([["gave up", "end"], ["gave up", "end", "inner", "inner done"]].contains(journal.entries))
  }

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// In a process of its own, or the waits of other tests would be refused, too.
  @Test func aWaitThatMightFindNoThreadIsRefused() async {
    await #expect(processExitsWith: .success) {
      let target = SerialScheduler(name: "target")
      let end = await target.held()
      let waiters = (0..<200).map { SerialScheduler(name: "waiter \($0)") }
      let begun = Journal<Int>()
      let ended = Journal<Int>()
      for (index, waiter) in waiters.enumerated() {
        waiter.schedule {
          begun.write(index)
          // Below, the late one may be among the first 200 for a moment.
          while (try? target.wait { ended.write(index) }) == nil {}
        }
      }
      await begun.reaches(200)
      let late = SerialScheduler(name: "late")
      // Some of them may be about to be blocked.
      var refusal: OperationError?
      while refusal == nil {
        do {
          try await late.run { try target.wait(timeout: .milliseconds(10)) {} }
        } catch let error as OperationError where error.code == .overflow {
          refusal = error
        } catch OperationError.Code.timedOut {}
      }
      let message = refusal?.message ?? ""
      precondition(message.contains("“late” cannot wait for “target” because 200 schedulers already block"), message)
      // A thread of its own is no scheduler's, and may wait.
      let outside = Gate()
      Thread.detachNewThread {
        if (try? target.wait { 1 }) == 1 { outside.open() }
      }
      end.open()
      await outside.opened()
      await ended.reaches(200)
      // Their threads may take a moment to go on.
      while (try? await late.run { try target.wait {} }) == nil {}
    }
  }
  #endif
}
