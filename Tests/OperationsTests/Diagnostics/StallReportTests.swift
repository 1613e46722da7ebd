import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StallReportTests {
  private let queue = OperationQueue.named("sync")
  private let narrow = OperationQueue.named("one", limit: 1)

  // MARK: The report

  @Test func encodedReport_isDecodedAsItWas() async throws {
    let held = await narrow.holding("held “x”\n\0\\")
    narrow.addOperation(operation("next"))
    let report = narrow.stallReport()
    let data = try JSONEncoder().encode(report)
    #expect(try JSONDecoder().decode(StallReport.self, from: data) == report)
    #expect(String(decoding: data, as: UTF8.self).contains(#""cause":"saturated""#))
    await narrow.drained(opening: [held.gate])
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
    let header = "3 operations have not finished, in the group “group” or elsewhere:"
    #expect("\(report)".hasPrefix("\(header)\n“held” has"))
    #expect(try report.entry("group").waitsFor.sorted() == ["held", "member"])
    await queue.drained(opening: [held.gate])
    #expect("\(group.stallReport())" == "Nothing is left to be done in the group “group”.")
  }

  @Test func neverAddedOperation_isSaidToBeNowhereUntilItHasFinished() async {
    let orphan = operation("orphan")
    #expect(
      "\(orphan.stallReport())" == """
        1 operation has not finished, in the operation “orphan” or elsewhere:
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
    #expect(text.hasPrefix("“last” waits for “0”\(others); at the root, “-” was never"), "\(text)")
  }

  // MARK: Executing

  @Test func onlyWhatMayForgetToFinishIsSuspectedOfIt() async throws {
    let (end, source, target) = (Gate(), BlockOperation {}, BlockOperation {})
    let transform = TransformOperation { (_: Int) in end.pass() }.named("transform")
    transform.input = 1
    let held = HeldOperation().named("held")
    let retry = RetryOperation(attempts: 1) { _ in
      end.pass()
      return ResultOperation {}
    }
    queue.addOperations([
      ResultOperation { end.pass() }.named("result"), transform, source,
      AdapterOperation(from: source, to: target) { _, _ in end.pass() }.named("adapter"), held, retry.named("retry"),
    ])
    let names = ["result", "transform", "adapter", "held", "retry"]
    func entries() -> [StallReport.Entry] { queue.stallReport().entries.filter { names.contains($0.operation) } }
    // The guess comes after a second.
    while !entries().allSatisfy({ $0.elapsed ?? .zero >= .seconds(1) }) || entries().count < names.count {
      try await Task.sleep(for: .milliseconds(50))
    }
    let suspected = entries().filter { $0.description.contains("call `finish` on every path") }
    #expect(suspected.map(\.operation) == ["held"])
    queue.addOperation(target)
    await queue.drained(opening: [end, held.gate])
  }

  @Test func dependencyThatNotifiesItsObserversOfItsEnd_isTransitioning() async {
    let (first, second, causes) = (operation("first"), operation("second"), Journal<StallReport.Cause?>())
    first ==> second
    first.addObserver(didFinish: { [queue] _ in causes.write(try? queue.stallReport().entry("second").cause) })
    await queue.run(settling: [first, second])
    #expect(causes.entries == [.transitioning])
  }

  @Test func aFlatMapThatFollowsAnOperation_waitsForIt() async throws {
    let (held, login) = (HeldOperation().named("held"), ResultOperation { "token" }.named("login"))
    held ==> login
    queue.addGraph(endingIn: login)
    await held.begun.opened()
    let page = ResultOperation { 1 }.flatMap { _ in login }.named("page")
    queue.addGraph(endingIn: page)
    await poll { (try? page.stallReport().entry("page").root) == "held" }
    let entry = try page.stallReport().entry("page")
    #expect(entry.waitsFor == ["login"] && entry.cause == .executing && entry.description.hasPrefix("“page” waits for"))
    #expect(OperationGraph([page]).nodes.map(\.name).suffix(2) == ["login", "held"])
    await queue.drained(opening: [held.gate])
  }

  @Test func executingAttempt_isInsideItsRetryInReportsAndGraphs() async throws {
    let attempt = HeldOperation().named("attempt")
    let retry = await queue.add(RetryOperation(attempts: 2) { _ in attempt }.named("retry"), until: attempt.begun)
    let (report, graph) = (queue.stallReport(), OperationGraph([retry]))
    #expect(report.entries.map(\.operation) == ["attempt", "retry"])
    #expect(try report.entry("retry").waitsFor == ["attempt"] && report.entry("retry").root == "attempt")
    #expect(graph.nodes.map(\.name) == ["retry", "attempt"] && graph.nodes[1].group == 0)
    await queue.drained(opening: [attempt.gate])
  }

  // MARK: Cycles

  @Test(arguments: [false, true]) func aCycleIsSpelledOutOnce(isPlain: Bool) async throws {
    let other = OperationQueue()
    var (ring, after) = ([Operation](), operation("after"))
    let report = try await reports(ofACycleOf: ["a", "b", "c", "after"]) {
      await queue.finished()
      ring = ["a", "b", "c"].map { isPlain ? Operation().named($0) : operation($0) }
      after = operation("after")
      ring[0] ==> ring[1] ==> ring[2] ==> ring[0]
      ring[2] ==> after
      queue.addOperations([ring[0], ring[1], after])
      other.addOperations([ring[2]])
      return [queue.stallReport(alsoIn: [other])]
    }[0]
    #expect(Set(report.roots.map(\.operation)) == ["a", "b", "c"])
    #expect(
      report.entries.map(\.description) == [
        "“a” waits for “c”, which waits for “b”, which waits for “a”, in a cycle.",
        "“b” waits for “a”, in the cycle of “a”.", "“c” waits for “b”, in the cycle of “a”.",
        "“after” waits for “c”, which waits for “b”, in the cycle of “a”.",
      ]
    )
    #expect(try report.entry("after").root == "c")
    // On Linux, a plain operation whose dependency is removed never becomes ready, so the test awaits only `after`.
    after.removeDependency(ring[2])
    await after.finished()
    for operation in ring { operation.cancel() }
    untie(ring)
  }

  @Test func aLongCycleIsCutShort() async throws {
    let operations = chain((0..<1000).map { operation("\($0)") })
    operations[999] ==> operations[0]
    // In a queue, one of them would give way.
    let report = try #require(operations[0] as? AsyncOperation).stallReport()
    #expect(report.entries.count == 1000)
    #expect(report.entries.allSatisfy { $0.cause == .cycle && $0.description.count < 400 })
    #expect(try report.entry("0").description.hasSuffix(", and so on, back to “0”, in a cycle."))
    operations[0].removeDependency(operations[999])
    queue.addOperations(operations)
    await queue.finished()
  }

  @Test(arguments: [false, true]) func aGroupAndItsMemberThatWaitForEachOther(isGroupFirst: Bool) async throws {
    let report = try await reports(ofACycleOf: ["group", "member"]) {
      await queue.drained()
      let member = operation("member")
      let group = GroupOperation([member]).named("group")
      if isGroupFirst { group ==> member } else { member ==> group }
      queue.isSuspended = true
      queue.addOperation(group)
      return [queue.stallReport()]
    }[0]
    #expect(report.entries.count == 2)
    #expect(try report.entry("group").waitsFor == ["member"] && report.entry("member").waitsFor == ["group"])
    queue.cancelAllOperations()
    await queue.drained()
  }

  // MARK: Slots

  @Test(arguments: ["the slot of the queue “one”, taken", "the slot of the group “one”, taken", "the key “k”, held"])
  func aCycleThroughASlotOrAKeyIsSpelledOut(use: String) async throws {
    let reports = try await reports(ofACycleOf: ["group", "member", "later"]) {
      await narrow.finished()
      let (later, inAGroup, domain) = (operation("later"), use.contains("the group"), ExclusivityDomain())
      let group = GroupOperation([later ==> operation("member")]).named("group")
      let outer = GroupOperation(inAGroup ? [group, later] : [], maxConcurrentOperationCount: 1).named("one")
      if use.contains("key") { for operation in [group, later] { operation.exclusive("k", in: domain) } }
      narrow.addOperations(inAGroup ? [outer] : [group, later])
      await poll { group.isExecuting || group.isFinished }
      return [narrow.stallReport(), group.stallReport()]
    }
    for report in reports {
      #expect(report.entries.allSatisfy { $0.cause == .cycle }, "\(report)")
      let sentence = "“group” waits for its member “member”, which waits for “later”, which waits for \(use) by “group”"
      #expect(try report.entry("group").description == sentence + ", in a cycle.")
      #expect(try report.entry("later").description == "“later” waits for \(use) by “group”, in the cycle of “group”.")
    }
    narrow.cancelAllOperations()
    await narrow.finished()
  }

  @Test func aLoweredLimitCanCloseACycle() async throws {
    _ = try await reports(ofACycleOf: ["waiting"]) {
      let (held, inner, waiting) = (await narrow.holding(), HeldOperation(), operation("waiting"))
      narrow.maxConcurrentOperationCount = 2
      await narrow.add(GroupOperation([inner, waiting ==> operation("member")]), until: inner.begun)
      narrow.maxConcurrentOperationCount = 1
      narrow.addOperation(waiting)
      let report = narrow.stallReport()
      narrow.maxConcurrentOperationCount = -1
      await narrow.drained(opening: [held.gate, inner.gate])
      return [report]
    }
  }

  @Test func slotThatIsPartOfACycle_isTheCauseOfAllThatWaitForIt() async throws {
    let report = try await reports(ofACycleOf: ["second", "third"]) {
      await narrow.finished()
      let (first, second) = (operation("first"), operation("second"))
      let group = GroupOperation([first ==> operation("member")]).named("group")
      await narrow.begin(group)
      narrow.addOperations([first, second, second ==> operation("third")])
      return [narrow.stallReport()]
    }[0]
    for name in ["second", "third"] { #expect(try report.entry(name).root == "group", "\(report)") }
    let sentence = "; “group” waits for its member “member”, in the cycle of “group”."
    #expect(try report.entry("second").description.contains(sentence), "\(report)")
    #expect(try report.entry("third").description.contains("in the cycle of “group”"), "\(report)")
    narrow.maxConcurrentOperationCount = -1
    await narrow.finished()
  }
}
