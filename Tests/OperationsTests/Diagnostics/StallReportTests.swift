import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StallReportTests {
  private let queue = OperationQueue.named("sync")

  // MARK: The report

  @Test func encodedReport_isDecodedAsItWas() async throws {
    queue.maxConcurrentOperationCount = 1
    let held = await queue.holding("held “x”\n\0\\")
    queue.addOperation(operation("next"))
    let report = queue.stallReport()
    let data = try JSONEncoder().encode(report)
    #expect(try JSONDecoder().decode(StallReport.self, from: data) == report)
    #expect(String(decoding: data, as: UTF8.self).contains(#""cause":"saturated""#))
    await queue.drained(opening: [held.gate])
  }

  @Test func entryOfALaterVersion_isDecodedWithItsCauseAndSeconds() throws {
    let json = #"{"operation": "a", "cause": "fromTheFuture", "waitsFor": [], "elapsed": 1.5, "description": "a."}"#
    let entry = try JSONDecoder().decode(StallReport.Entry.self, from: Data(json.utf8))
    #expect(entry.cause.rawValue == "fromTheFuture" && entry.elapsed == .milliseconds(1500))
  }

  // MARK: The subject

  @Test func reportOfAGroup_coversItsMembersOnly() async throws {
    let held = HeldOperation().named("held")
    let group = GroupOperation([held, held ==> operation("member")]).named("group")
    queue.addOperations([group, operation("unrelated")])
    await held.begun.opened()
    let report = group.stallReport()
    #expect(report.entries.map(\.operation).sorted() == ["group", "held", "member"])
    let header = "3 operations have not finished, in the group “group” or where it waits:"
    #expect("\(report)".hasPrefix("\(header)\n“held” has"))
    #expect(try report.entry("group").waitsFor.sorted() == ["held", "member"])
    await queue.drained(opening: [held.gate])
    #expect("\(group.stallReport())" == "Nothing is left to be done in the group “group”.")
  }

  @Test func neverAddedOperation_isSaidToBeNowhereUntilItHasFinished() async {
    let orphan = operation("orphan")
    #expect(
      "\(orphan.stallReport())" == """
        1 operation has not finished, in the operation “orphan” or where it waits:
        “orphan” was never added to a queue or a group.
        """
    )
    queue.addOperation(orphan)
    await queue.drained()
    #expect("\(orphan.stallReport())" == "Nothing is left to be done in the operation “orphan”.")
    #expect("\(queue.stallReport())" == "Nothing is left to be done in the queue “sync”.")
  }

  @Test(arguments: [
    (2, " and “1”"), (9, ", “1”, “2”, “3”, “4”, “5”, “6”, “7” and “8”"),
    (12, ", “1”, “2”, “3”, “4”, “5”, “6”, “7”, “8” and 3 others"),
  ])
  func severalDependencies_areNamedUpToALimit(count: Int, others: String) throws {
    let last = operation("last")
    for index in 0..<count { operation("\(index)").waits(for: operation("-")) ==> last }
    let text = try last.stallReport().entry("last").description
    #expect(text.hasPrefix("“last” waits for “0”\(others); “0” "), "\(text)")
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
    await queue.drained(opening: [held.gate])
  }

  @Test func onlyWhatMayForgetToFinishIsSuspectedOfIt() async throws {
    let (end, source, target) = (Gate(), BlockOperation {}, BlockOperation {})
    let transform = TransformOperation { (_: Int) in end.pass() }.named("transform")
    transform.input = 1
    let held = HeldOperation().named("held")
    queue.addOperations([
      ResultOperation { end.pass() }.named("result"), transform, source,
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
    queue.addOperation(target)
    await queue.drained(opening: [end, held.gate])
  }

  @Test func aConditionThatIsBeingEvaluatedIsNamed() async throws {
    let (upload, begun, end) = (operation("upload"), Gate(), Gate())
    upload.addCondition(OperationCondition(name: "met at once") { _ in })
    upload.addCondition(
      OperationCondition(name: "signed in") { _ in
        begun.open()
        await end.opened()
      }
    )
    queue.addOperations([upload, upload ==> operation("after")])
    await begun.opened()
    let report = queue.stallReport()
    let (entry, dependent) = try (report.entry("upload"), report.entry("after"))
    #expect(entry.cause == .condition && entry.elapsed != nil)
    let sentence = "“upload” has not started because its condition “signed in” is being evaluated"
    #expect(entry.description.hasPrefix(sentence))
    #expect(dependent.cause == .condition && dependent.root == "upload")
    await queue.drained(opening: [end])
  }

  @Test func dependencyThatNotifiesItsObserversOfItsEnd_isTransitioning() async {
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

  /// A retry whose second attempt succeeds, after a backoff of 10 s.
  private func failingRetry() -> RetryOperation<Int> {
    RetryOperation(attempts: 5, backoff: .constant(.seconds(10))) { attempt in
      ResultOperation { if attempt == 1 { throw TestError("once") } else { attempt } }
    }.named("retry")
  }

  @Test func backingOff_saysWhichAttemptIsNextAndWhen_andTakesNoSlot() async throws {
    let (clock, retry, held) = (ManualClock(), failingRetry(), HeldOperation().named("held"))
    let group = GroupOperation([retry, held, operation("next"), retry ==> operation("after")])
    group.maxConcurrentOperationCount = 1
    group.clock = clock
    await queue.add(group, until: held.begun)
    await clock.waitForSleepers()
    clock.advance(by: .seconds(4))
    let report = queue.stallReport()
    #expect(try report.entry("retry").cause == .backingOff && report.entry("after").root == "retry")
    #expect(try report.entry("retry").description == "“retry” waits for attempt 2 of 5, which begins in 6 s.")
    #expect(try report.entry("next").waitsFor == ["held"])
    clock.advance(by: .seconds(6))
    await queue.drained(opening: [held.gate])
  }

  @Test func executingAttempt_isInsideItsRetryInReportsAndGraphs() async throws {
    let attempt = HeldOperation().named("attempt")
    let retry = RetryOperation(attempts: 2) { _ in attempt }.named("retry")
    await queue.add(retry, until: attempt.begun)
    let (report, graph) = (queue.stallReport(), OperationGraph([retry]))
    #expect(report.entries.map(\.operation) == ["attempt", "retry"])
    #expect(try report.entry("retry").waitsFor == ["attempt"] && report.entry("retry").root == "attempt")
    #expect(graph.nodes.map(\.name) == ["retry", "attempt"] && graph.nodes[1].group == 0)
    await queue.drained(opening: [attempt.gate])
  }

  @Test func reportsWhileBackoffsEnd_changeNothing() async {
    for _ in 0..<200 {
      let clock = ManualClock()
      let group = GroupOperation([failingRetry()])
      group.clock = clock
      queue.addOperation(group)
      await clock.waitForSleepers(1)
      await onThreads(2) { thread in
        if thread == 0 { clock.advance(by: .seconds(10)) } else { for _ in 0..<5 { _ = group.stallReport() } }
      }
      await group.finished()
    }
  }
}
