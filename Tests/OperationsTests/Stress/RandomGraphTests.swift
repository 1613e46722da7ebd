import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Random graphs of hundreds of operations, which fail, are cancelled and finish in every way there is.
///
/// The seed of each round is in the test's name and in every failure: `RANDOM_GRAPH_SEED=17 swift test --filter
/// RandomGraph` replays one.
@Suite(.timeLimit(.minutes(5)))
struct RandomGraphTests {
  private enum Way: CaseIterable {
    case atOnce, onAnotherThread, twice, withError, withErrorOnAnotherThread, whenCancelled
  }

  private typealias History = Journal<(index: Int, hasFinished: Bool)>

  private final class Node: AsyncOperation, @unchecked Sendable {
    let index: Int
    let way: Way
    private let history: History

    init(_ index: Int, _ way: Way, _ history: History) {
      (self.index, self.way, self.history) = (index, way, history)
      super.init()
      named("\(index)")
    }

    override func execute() {
      history.write((index, false))
      switch way {
      case .atOnce: finish()
      case .onAnotherThread, .whenCancelled: DispatchQueue.global().async { self.finish() }
      case .twice:
        DispatchQueue.global().async { self.finish() }
        finish()
      case .withError: finish(with: TestError("\(index)"))
      case .withErrorOnAnotherThread: DispatchQueue.global().async { self.finish(with: TestError("\(self.index)")) }
      }
    }

    override func didCancel() { if way == .whenCancelled { finish() } }
    override func didFinish() { history.write((index, true)) }

    var fails: Bool { way == .withError || way == .withErrorOnAnotherThread }
  }

  private struct Graph {
    var generator: SeededGenerator
    let nodes: [Node]
    let edges: [(from: Int, to: Int)]
    let history = History()

    init(seed: UInt64) {
      generator = SeededGenerator(seed: seed)
      var (nodes, edges): ([Node], [(from: Int, to: Int)]) = ([], [])
      for index in 0..<Int.random(in: 100...400, using: &generator) {
        nodes.append(Node(index, Way.allCases.randomElement(using: &generator)!, history))
        guard index > 0 else { continue }
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
          let dependency = Int.random(in: max(0, index - 40)..<index, using: &generator)
          nodes[dependency] ==> nodes[index]
          edges.append((dependency, index))
        }
      }
      (self.nodes, self.edges) = (nodes, edges)
    }

    /// Cancels some, at moments that the machine chooses.
    @discardableResult
    mutating func cancelSome() async -> Set<Int> {
      let victims = nodes.filter { _ in Int.random(in: 0..<20, using: &generator) == 0 }
      await onThreads(2) { thread in
        for victim in victims where victim.index.isMultiple(of: 2) == (thread == 0) { victim.cancel() }
      }
      return Set(victims.map(\.index))
    }

    func check(_ seed: UInt64, sourceLocation: SourceLocation = #_sourceLocation) {
      var (executed, finished): ([Int: Int], [Int: Int]) = ([:], [:])
      for (position, event) in history.entries.enumerated() {
        let earlier =
          event.hasFinished
          ? finished.updateValue(position, forKey: event.index) : executed.updateValue(position, forKey: event.index)
        #expect(earlier == nil, "seed \(seed): twice: \(event)")
      }
      #expect(finished.count == nodes.count, "seed \(seed)", sourceLocation: sourceLocation)
      let early = edges.filter { edge in
        guard let start = executed[edge.to], let end = finished[edge.from] else { return false }
        return start < end
      }
      #expect(early.isEmpty, "seed \(seed): started before its dependency", sourceLocation: sourceLocation)
      for node in nodes {
        #expect(node.isFinished && node.state == .finished, "seed \(seed): \(node.index)")
        if executed[node.index] == nil {
          #expect(node.isCancelled, "seed \(seed): \(node.index) never executed")
        } else {
          #expect(node.errors.count == (node.fails ? 1 : 0), "seed \(seed): \(node.index)")
        }
      }
    }
  }

  /// Drops the errors of every third node.
  private final class DroppingGroup: GroupOperation, @unchecked Sendable {
    override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
      (member as? Node)?.index.isMultiple(of: 3) == true ? [] : errors
    }
  }

  /// Half of the members are added while others fail, and the priorities change meanwhile.
  @Test(arguments: SeededGenerator.seeds)
  func inAGroupThatCancelsDependents(seed: UInt64) async {
    var graph = Graph(seed: seed)
    let group = DroppingGroup()
    (group.errorPolicy, group.staysOpen) = (.cancelDependents, true)
    group.maxConcurrentOperationCount = Int.random(in: 1...8, using: &graph.generator)
    let order = graph.nodes.shuffled(using: &graph.generator)
    group.addOperations(Array(order.prefix(order.count / 2)))
    OperationQueue().addOperation(group)
    let priorities: [Operation.QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]
    for node in order.dropFirst(order.count / 2) {
      group.addOperation(node)
      order.randomElement(using: &graph.generator)!.queuePriority = priorities.randomElement(using: &graph.generator)!
    }
    let victims = await graph.cancelSome()
    group.staysOpen = false
    await group.finished()
    graph.check(seed)
    let stopping = Set(
      graph.nodes.filter { $0.isCancelled || (!$0.errors.isEmpty && !$0.index.isMultiple(of: 3)) }.map(\.index)
    )
    let dependents = Set(graph.edges.filter { stopping.contains($0.from) }.map(\.to))
    let cancelled = Set(graph.nodes.filter(\.isCancelled).map(\.index))
    #expect(cancelled.isSuperset(of: dependents) && cancelled.isSubset(of: dependents.union(victims)), "seed \(seed)")
  }

  /// Graphs that overlap, added to groups by threads at once; what both lead to runs once, in one of them.
  @Test(arguments: SeededGenerator.seeds)
  func sharedGraphsInGroups(seed: UInt64) async {
    var graph = Graph(seed: seed)
    let groups = (0..<4).map { GroupOperation().named("group \($0)") }
    // They stay open until all threads are done.
    for group in groups { (group.isSuspended, group.staysOpen) = (true, true) }
    OperationQueue().addOperations(groups)
    let ends = graph.nodes.suffix(40).map(\.index).shuffled(using: &graph.generator)
    let nodes = graph.nodes
    let cancelled = seed.isMultiple(of: 3) ? Int.random(in: 0..<4, using: &graph.generator) : nil
    await onThreads(4) { thread in
      for (position, index) in ends.enumerated() where position % 4 == thread || position % 4 == (thread + 1) % 4 {
        groups[thread].addGraph(endingIn: nodes[index])
      }
      if thread == cancelled { groups[thread].cancel() }
    }
    // What no end leads to.
    for node in nodes { groups[1].addGraph(endingIn: node) }
    for group in groups { group.isSuspended = false }
    await graph.cancelSome()
    for group in groups { group.staysOpen = false }
    for group in groups { await group.finished() }
    graph.check(seed)
    #expect(groups.allSatisfy { $0.operations.isEmpty }, "seed \(seed)")
  }

  /// Plain members of a group through which much passes, cancelled at any moment, with dependencies that come late.
  @Test(arguments: SeededGenerator.seeds)
  func plainMembersThatAreCancelled(seed: UInt64) async {
    var generator = SeededGenerator(seed: seed)
    let group = GroupOperation().named("group")
    group.maxConcurrentOperationCount = Int.random(in: 1...3, using: &generator)
    group.staysOpen = true
    let staying = HeldOperation()
    OperationQueue().addOperations([group, staying])
    let journal = Journal<Int>()
    var (members, cancelled): ([BlockOperation], Set<Int>) = ([], [])
    let (late, additions) = (BlockOperation {}, DispatchGroup())
    for index in 0..<200 {
      let member = BlockOperation { journal.write(index) }.named("\(index)")
      for _ in 0..<Int.random(in: 0...2, using: &generator) {
        if let other = members.suffix(20).randomElement(using: &generator) { other ==> member }
      }
      if index.isMultiple(of: 17) {
        staying ==> member
        DispatchQueue.global().async(group: additions) { late ==> member }
      }
      group.addOperation(member)
      members.append(member)
      if index.isMultiple(of: 5) { _ = group.operations.count }
      if Int.random(in: 0..<4, using: &generator) == 0 {
        let victim = Int.random(in: max(0, index - 20)...index, using: &generator)
        cancelled.insert(victim)
        if victim.isMultiple(of: 2) { members[victim].cancel() }
        group.cancelOperations(named: "\(victim)")
      }
    }
    // Whatever they wait for.
    for victim in cancelled { await members[victim].finished() }
    await withCheckedContinuation { all in additions.notify(queue: .global()) { all.resume() } }
    OperationQueue().addOperation(late)
    staying.gate.open()
    group.staysOpen = false
    await group.finished()
    #expect(members.allSatisfy { $0.isFinished }, "seed \(seed)")
    let executed = Set(journal.entries)
    #expect(executed.count == journal.entries.count, "seed \(seed): executed twice")
    for index in members.indices where !cancelled.contains(index) {
      #expect(executed.contains(index), "seed \(seed): \(index) never executed")
    }
  }
}
