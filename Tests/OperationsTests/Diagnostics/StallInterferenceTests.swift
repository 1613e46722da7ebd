import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Stall reports that are taken while operations start, execute and finish change nothing, and are never wrong.
@Suite(.timeLimit(.minutes(5)))
struct StallInterferenceTests {
  /// Runs members that depend on each other and hold keys, and calls `ask` at every event of their lives.
  ///
  /// - Returns: The events in an order that is certain.
  private func run(asking ask: @escaping @Sendable (OperationQueue, GroupOperation) -> Void) async -> [String] {
    let (journal, domain) = (Journal<String>(), ExclusivityDomain())
    let (queue, group) = (OperationQueue.limited(to: 1), GroupOperation([]))
    let event = { @Sendable (text: String?) in
      if let text { journal.write(text) }
      ask(queue, group)
    }
    group.maxConcurrentOperationCount = 1
    let members = chain(
      (0..<30).map { index in index % 5 == 0 ? BlockOperation { event("\(index)") } : member(index, event) }
    )
    members[29].cancel()
    for (index, member) in members.enumerated() {
      if index % 3 == 0 { (member as? AsyncOperation)?.exclusive("key", in: domain) }
      group.addOperation(member)
      event(nil)
    }
    let after = member(60, event)
    for operation in [group, after] { queue.addOperation(operation.exclusive("outer", in: domain)) }
    event(nil)
    await after.finished()
    event(nil)
    return journal.entries + ["\(group.isSuccessful), \(group.errors.count), \(domain.holders(of: "key"))"]
  }

  private func member(_ index: Int, _ event: @escaping @Sendable (String?) -> Void) -> AsyncOperation {
    let member = AsyncBlockOperation { operation in
      event("\(index)")
      operation.finish()
      event(nil)
    }
    member.addObserver(
      OperationObserver(
        didStart: { _ in event(nil) },
        didCancel: { _ in event(nil) },
        didFinish: { _ in event("end of \(index)") }
      )
    )
    if index % 7 == 0 { member.addCondition(OperationCondition(name: "asking") { _ in event(nil) }) }
    return member
  }

  @Test func reportsAtEveryEvent_changeNothing() async {
    let quiet = await run { _, _ in }
    let asked = await run { queue, group in _ = (queue.stallReport(), group.stallReport(), OperationGraph([group])) }
    #expect(quiet == asked && quiet.count > 50)
  }

  @Test func reportsFromAnotherThread_changeNothing() async {
    let quiet = await run { _, _ in }
    for _ in 0..<10 {
      let (end, subject) = (Gate(), Locked<(OperationQueue, GroupOperation)?>(nil))
      async let asking = onThread {
        while !end.isOpen {
          guard let (queue, group) = subject.withLock({ $0 }) else { continue }
          #expect(OperationGraph([group]).cycle == nil)
          for report in [queue.stallReport(), group.stallReport()] {
            #expect(report.entries.allSatisfy { !$0.description.isEmpty && $0.cause != .cycle }, "\(report)")
          }
        }
      }
      let asked = await run { queue, group in subject.withLock { $0 = (queue, group) } }
      end.open()
      _ = await asking
      #expect(asked == quiet)
    }
  }

  @Test func reportsWhileOperationsFinish_nameNoLastingCause() async {
    let (queue, end) = (OperationQueue(), Gate())
    async let asking = onThread {
      while !end.isOpen {
        let report = queue.stallReport()
        #expect(report.entries.allSatisfy { ![.cycle, .suspended, .notEnqueued].contains($0.cause) }, "\(report)")
      }
    }
    for _ in 0..<200 {
      let operations = chain((0..<20).map { _ in AsyncOperation() })
      queue.addOperations(operations)
      await operations[19].finished()
    }
    end.open()
    _ = await asking
  }
}
