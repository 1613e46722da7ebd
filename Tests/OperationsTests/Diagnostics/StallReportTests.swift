import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StallReportTests {
  private let queue = OperationQueue.named("sync")

  // MARK: The report

  @Test func aQueueWithNothingToDoHasNoEntries() async throws {
    try await queue.run(operation("a"))
    await queue.finished()
    let report = queue.stallReport()
    #expect(report.entries.isEmpty && report.roots.isEmpty)
    #expect("\(report)" == "Nothing is left to be done in the queue “sync”.")
  }

  @Test func itIsTheSameAfterEncodingAndDecoding() async throws {
    let held = HeldOperation().named("held “x”\n\0\\")
    queue.maxConcurrentOperationCount = 1
    queue.addOperations([held, operation("next")])
    await held.begun.opened()
    let report = queue.stallReport()
    let data = try JSONEncoder().encode(report)
    #expect(try JSONDecoder().decode(StallReport.self, from: data) == report)
    #expect(String(decoding: data, as: UTF8.self).contains(#""cause":"saturated""#))
    let json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let entries = try #require(json["entries"] as? [[String: Any]])
    let elapsed = try #require(entries.compactMap { $0["elapsed"] as? Double }.first)
    let reported = try #require(report.entries[0].elapsed) / .seconds(1)
    #expect(elapsed >= 0 && abs(elapsed - reported) < 1e-6)
    held.gate.open()
    await queue.finished()
  }

  @Test func aCauseOfALaterVersionIsDecoded() throws {
    let causes = try JSONDecoder().decode([StallReport.Cause].self, from: Data(#"["executing", "fromTheFuture"]"#.utf8))
    #expect(causes[0] == .executing && causes[1].rawValue == "fromTheFuture")
  }

  @Test func reportsAndGraphsKeepNoOperationAlive() async {
    let live = LiveCount()
    queue.isSuspended = true
    queue.addOperation(CountedGroup(live, [operation("member")]))
    let (report, graph) = (queue.stallReport(), OperationGraph(queue.operations))
    queue.isSuspended = false
    await queue.finished()
    await live.none()
    #expect(report.entries.count == 2 && graph.nodes.count == 2)
  }

  // MARK: Whose report

  @Test func aGroupCanBeAskedItself() async throws {
    let held = HeldOperation().named("held")
    let group = GroupOperation([held, held ==> operation("member")]).named("group")
    queue.addOperations([group, operation("unrelated")])
    await held.begun.opened()
    let report = group.stallReport()
    #expect(report.entries.map(\.operation).sorted() == ["group", "held", "member"])
    let header = "3 operations have not finished, in the group “group” or where it waits:"
    #expect("\(report)".hasPrefix("\(header)\n“held” has"))
    #expect(try report.entry("group").waitsFor.sorted() == ["held", "member"])
    held.gate.open()
    await queue.finished()
    #expect("\(group.stallReport())" == "Nothing is left to be done in the group “group”.")
  }

  @Test func anOperationThatWasNeverAddedSaysSo() async throws {
    let orphan = operation("orphan")
    #expect(try orphan.stallReport().entry("orphan").cause == .notEnqueued)
    #expect(
      "\(orphan.stallReport())" == """
        1 operation has not finished, in the operation “orphan” or where it waits:
        “orphan” was never added to a queue or a group.
        """
    )
    queue.addOperation(orphan)
    await orphan.finished()
    #expect("\(orphan.stallReport())" == "Nothing is left to be done in the operation “orphan”.")
  }

  @Test(arguments: [2, 9, 12])
  func theOtherOperationsItWaitsForAreNamed(count: Int) throws {
    let last = operation("last")
    for index in 0..<count { operation("\(index)").waits(for: operation("-")) ==> last }
    let text = try last.stallReport().entry("last").description
    let others =
      switch count {
      case 2: " and “1”; “0” "
      case 9: ", “1”, “2”, “3”, “4”, “5”, “6”, “7” and “8”; “0” "
      default: ", “1”, “2”, “3”, “4”, “5”, “6”, “7”, “8” and 3 others; “0” "
      }
    #expect(text.hasPrefix("“last” waits for “0”\(others)"), "\(text)")
  }

  // MARK: Executing

  @Test func anOperationThatHasNotFinishedIsSaidToBeExecuting() async throws {
    let (held, after) = (await queue.holding(), operation("after"))
    queue.addOperation(held ==> after)
    let entry = try queue.stallReport().entry("held")
    #expect(entry.cause == .executing && entry.elapsed != nil && entry.waitsFor.isEmpty && entry.root == nil)
    #expect(entry.description.hasPrefix("“held” has "))
    let dependent = try after.stallReport().entry("after")
    #expect(dependent.cause == .executing && dependent.waitsFor == ["held"] && dependent.root == "held")
    held.cancel()
    #expect(try queue.stallReport().entry("held").description.contains("cancelled"))
    held.gate.open()
    await queue.finished()
  }

  @Test func anOperationThatWasStartedByHandIsSaidToBeExecuting() async throws {
    let held = HeldOperation().named("held")
    queue.addOperation(held ==> operation("after"))
    await start(held)
    #expect(try queue.stallReport().entry("held").cause == .executing)
    held.gate.open()
    await queue.finished()
  }

  @Test func aDelayThatHasNotPassedIsSaidToBeExecuting() async throws {
    let (clock, delay) = (ManualClock(), DelayOperation(.seconds(90)).named("delay"))
    delay.clock = clock
    queue.addOperation(delay)
    await clock.waitForSleepers()
    #expect(try queue.stallReport().entry("delay").cause == .executing)
    clock.advance(by: .seconds(90))
    await delay.finished()
  }

  @Test func onlyWhatMayForgetToFinishIsSuspectedOfIt() async throws {
    let end = Gate()
    let (source, target) = (BlockOperation {}.named("source"), BlockOperation {}.named("target"))
    let transform = TransformOperation { (number: Int) -> Int in
      end.pass()
      return number
    }
    transform.input = 1
    let held = HeldOperation().named("held")
    queue.addOperations([
      ResultOperation { end.pass() }.named("result"), transform.named("transform"), source,
      AdapterOperation(from: source, to: target) { _, _ in end.pass() }.named("adapter"), held,
    ])
    let names = ["result", "transform", "adapter", "held"]
    func entries() -> [StallReport.Entry] { queue.stallReport().entries.filter { names.contains($0.operation) } }
    // The guess comes after a second.
    while !entries().allSatisfy({ $0.elapsed ?? .zero >= .seconds(1) }) || entries().count < names.count {
      try await Task.sleep(for: .milliseconds(50))
    }
    let suspected = entries().filter { $0.description.contains("perhaps it never calls finish()") }
    #expect(suspected.map(\.operation) == ["held"])
    end.open()
    held.gate.open()
    queue.addOperation(target)
    await queue.finished()
  }

  @Test func aConditionThatIsBeingEvaluatedIsNamed() async throws {
    let (upload, after, begun, end) = (operation("upload"), operation("after"), Gate(), Gate())
    upload.addCondition(OperationCondition(name: "met at once") { _ in })
    upload.addCondition(
      OperationCondition(name: "signed in") { _ in
        begun.open()
        await end.opened()
      }
    )
    upload ==> after
    queue.addOperations([upload, after])
    await begun.opened()
    let (entry, dependent) = try (queue.stallReport().entry("upload"), queue.stallReport().entry("after"))
    #expect(entry.cause == .condition && entry.elapsed != nil)
    let sentence = "“upload” has not started because its condition “signed in” is being evaluated"
    #expect(entry.description.hasPrefix(sentence))
    #expect(dependent.cause == .condition && dependent.root == "upload")
    end.open()
    await queue.finished()
  }

  @Test func oneWhoseDependencyIsJustTellingOfItsEndIsNotCalledUnready() async {
    let (first, second, causes) = (operation("first"), operation("second"), Journal<StallReport.Cause?>())
    first ==> second
    first.addObserver(
      OperationObserver(didFinish: { [queue] _ in causes.write(try? queue.stallReport().entry("second").cause) })
    )
    queue.addOperations([first, second])
    await second.finished()
    #expect(causes.entries == [.transitioning])
  }

  // MARK: Retries

  private func failingRetry(attempts: Int, after interval: Duration) -> RetryOperation<Int> {
    RetryOperation(attempts: attempts, backoff: .constant(interval)) { attempt in
      ResultOperation { if attempt == 1 { throw TestError("once") } else { attempt } }
    }.named("retry")
  }

  @Test func aRetrySaysWhichAttemptIsNextAndWhen() async throws {
    let (clock, retry, after) = (ManualClock(), failingRetry(attempts: 5, after: .seconds(10)), operation("after"))
    retry.clock = clock
    retry ==> after
    queue.addOperations([retry, after])
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(4))
    let entry = try queue.stallReport().entry("retry")
    #expect(entry.cause == .backingOff)
    #expect(entry.description == "“retry” waits for attempt 2 of 5, which begins in 6 s.")
    #expect(try queue.stallReport().entry("after").root == "retry")
    clock.advance(by: .seconds(6))
    await after.finished()
  }

  @Test func whoPausesTakesNoSlot() async throws {
    let (clock, retry) = (ManualClock(), failingRetry(attempts: 2, after: .seconds(60)))
    let (held, next) = (HeldOperation().named("held"), operation("next"))
    let group = GroupOperation([retry, held, next])
    group.maxConcurrentOperationCount = 1
    group.clock = clock
    queue.addOperation(group)
    await clock.waitForSleepers()
    await held.begun.opened()
    #expect(try group.stallReport().entry("next").waitsFor == ["held"])
    held.gate.open()
    await next.finished()
    clock.advance(by: .seconds(60))
    await queue.finished()
  }

  @Test func whatARetryTriesIsWhatItWaitsFor() async throws {
    let attempt = HeldAttempt().named("attempt")
    queue.addOperation(RetryOperation(attempts: 2) { _ in attempt }.named("retry"))
    await attempt.begun.opened()
    let report = queue.stallReport()
    #expect(report.entries.map(\.operation) == ["attempt", "retry"])
    #expect(try report.entry("retry").waitsFor == ["attempt"] && report.entry("retry").root == "attempt")
    attempt.finish(returning: 1)
    await queue.finished()
  }

  @Test func askingWhilePausesEndChangesNothing() async {
    for _ in 0..<200 {
      let clock = ManualClock()
      let group = GroupOperation([failingRetry(attempts: 2, after: .seconds(1))])
      group.clock = clock
      queue.addOperation(group)
      await clock.waitForSleepers(1)
      await onThreads(2) { thread in
        if thread == 0 {
          clock.advance(by: .seconds(1))
        } else {
          for _ in 0..<5 { _ = group.stallReport() }
        }
      }
      await group.finished()
    }
  }
}
