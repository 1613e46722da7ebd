import Foundation

/// The graph of what operations wait for, in O(n + e) and without recursion. Operations change while they are read, and
/// one lock is held at a time. A cycle is therefore real only if all of its nodes are still current at the end.
struct WaitSnapshot {
  enum Scope {
    /// A cancelled operation waits for its members only.
    case unfinished
    /// Even of cancelled operations.
    case everything
    /// As ``everything``, up to dependencies that are in a queue or group or have been started.
    case free
  }

  typealias Wait = (node: Int, kind: WaitKind)

  enum WaitKind: Equatable {
    case dependency
    case member
    /// The end of an operation that has members waits for its own start.
    case ownStart
    case groupStart
    /// A task that works for the operation waits for the end of another one. Not part of cycles of dependencies.
    case task
    /// A wait for a slot of a queue or group. Stall reports add this kind and the next two.
    case slot
    /// A wait for a key that admits `limit` holders.
    case key(limit: Int)
    /// The slots or the key wait for an operation that uses them, or that comes first in the wait queue of the key.
    case user
  }

  /// While it does not change, the operation waits for the same.
  struct Stamp: Equatable {
    var phase = OperationLifecycle.Phase.pending(.slot)
    var edition: Int32 = 0
    var isCancelled = false
  }

  /// The end of an operation, the start of an operation that has members, or a resource of a stall report.
  struct Node {
    let operation: Operation?
    var waits: [Wait] = []
    var stamp = Stamp()

    var isCurrent: Bool { operation.map { Stamp(of: $0) == stamp } ?? true }
  }

  private(set) var nodes: [Node] = []
  private var ends: [ObjectIdentifier: Int] = [:]
  private var starts: [ObjectIdentifier: Int] = [:]
  private let scope: Scope

  /// Reads what `operations` wait for, directly or indirectly. They are the first nodes.
  init(of operations: [Operation] = [], scope: Scope = .unfinished) {
    self.scope = scope
    for operation in operations { _ = index(of: operation) }
    var index = 0
    while index < nodes.count {
      _ = read(index)
      index += 1
    }
  }

  init?(of operation: Operation, limit: Int) {
    scope = .unfinished
    var (index, rest) = (index(of: operation), limit)
    while index < nodes.count {
      guard read(index, limit: rest) else { return nil }
      rest -= nodes[index].waits.count
      index += 1
    }
  }

  mutating func index(of operation: Operation, isStart: Bool = false) -> Int {
    let operation = operation.asMember ?? operation
    let id = ObjectIdentifier(operation)
    if let index = isStart ? starts[id] : ends[id] { return index }
    if isStart { starts[id] = nodes.count } else { ends[id] = nodes.count }
    nodes.append(Node(operation: operation))
    return nodes.count - 1
  }

  func isStart(_ node: Int) -> Bool { nodes[node].operation.map { starts[ObjectIdentifier($0)] == node } ?? false }

  mutating func addResource() -> Int {
    nodes.append(Node(operation: nil))
    return nodes.count - 1
  }

  mutating func addWait(_ node: Int, for other: Int, _ kind: WaitKind) {
    nodes[node].waits.append((other, kind))
  }

  /// Reads what a node waits for. Returns false without reading if there are more waits than the limit.
  mutating func read(_ node: Int, limit: Int = .max) -> Bool {
    guard let operation = nodes[node].operation else { return true }
    guard let own = operation as? AsyncOperation else {
      let stamp = Stamp(of: operation)
      nodes[node].stamp = stamp
      waitForDependencies(node, operation.dependencies, stamp)
      return nodes[node].waits.count <= limit
    }
    let inside = own.runsOthersInside && !isStart(node) ? own.inside : nil
    if limit < .max {
      let memberCount = inside?.engineOfMembers?.state.withLock { $0.members.count } ?? 0
      if own.core.withLock({ $0.ledger.dependencies.count }) + memberCount > limit { return false }
    }
    let (stamp, dependencies, outer) = own.core.withLock { (Stamp($0), $0.ledger.dependencies.entries, $0.outer) }
    nodes[node].stamp = stamp
    let isEnding = scope == .unfinished && stamp.phase.isOver
    let members = isEnding ? [] : inside?.members.filter { scope != .unfinished || !$0.isFinished } ?? []
    if !members.isEmpty, scope != .unfinished || stamp.phase.isBeforeExecution {
      addWait(node, for: index(of: own, isStart: true), .ownStart)
    } else {
      let shown = own.represented
      waitForDependencies(node, shown === own ? dependencies.map(\.operation) : shown.dependencies, stamp)
      if !stamp.isCancelled || scope != .unfinished, let outer, outer.isPendingGroup {
        addWait(node, for: index(of: outer, isStart: true), .groupStart)
      }
    }
    for member in members { addWait(node, for: index(of: member), .member) }
    if scope == .unfinished, stamp.phase.isExecuting {
      let awaited = own.core.withLock { $0.extras?.awaited ?? [] }
      for case let operation as Operation in awaited where !operation.isFinished {
        addWait(node, for: index(of: operation), .task)
      }
    }
    if let inside, !(inside is GroupOperation) { waitForDependencies(node, inside.dependencies, Stamp(of: inside)) }
    return true
  }

  private mutating func waitForDependencies(_ node: Int, _ dependencies: [Operation], _ stamp: Stamp) {
    if scope == .unfinished, !stamp.phase.isPending || stamp.isCancelled { return }
    for dependency in dependencies where scope != .unfinished || !dependency.isFinished {
      if scope == .free, (dependency as? AsyncOperation)?.isFree == false { continue }
      addWait(node, for: index(of: dependency), .dependency)
    }
  }
}

extension WaitSnapshot {
  typealias Blocked = (node: Node, cycle: [Operation])

  var order: WaitOrder { WaitOrder(nodes.map { $0.waits.filter { $0.kind != .task }.map(\.node) }) }

  /// The operation around each member, if its end is in the snapshot.
  var enclosing: [ObjectIdentifier: Operation] {
    var enclosing: [ObjectIdentifier: Operation] = [:]
    for node in nodes {
      for case let member? in node.waits.filter({ $0.kind == .member }).map({ nodes[$0.node].operation }) {
        // The members of a private group are also those of the operation around it, which comes later.
        enclosing[ObjectIdentifier(member)] = enclosing[ObjectIdentifier(member)] ?? node.operation
      }
    }
    return enclosing
  }

  /// Returns the operations on cycles, and those that depend on them, each after its dependencies. Sets that are no
  /// concern, such as the members of a nested group, count as finished.
  func blocked(in order: WaitOrder, where isConcern: ([Operation]) -> Bool) -> [Blocked] {
    var cycles: [Int: [Operation]] = [:]
    var blocked: [Blocked] = []
    for set in order.stuck {
      if !set.cycle.isEmpty, isConcern(set.items.compactMap { nodes[$0].operation }) {
        let cycle = set.cycle.compactMap { nodes[$0].operation }.withoutRepeats { ObjectIdentifier($0) }
        for node in set.items { cycles[node] = cycle }
      } else {
        // Cancelling a member does not cancel its group, so that only dependencies lead to cycles.
        for node in set.items {
          let waits = nodes[node].waits.lazy.filter { $0.kind == .dependency || $0.kind == .ownStart }
          cycles[node] = waits.compactMap { cycles[$0.node] }.first
        }
      }
      for node in set.items { if let cycle = cycles[node] { blocked.append((nodes[node], cycle)) } }
    }
    return blocked
  }
}

extension WaitSnapshot.Stamp {
  init(of operation: Operation) {
    if let own = operation as? AsyncOperation {
      self = own.core.withLock { Self($0) }
    } else {
      phase = operation.isFinished ? .finished : operation.isExecuting ? .executing : .pending(.slot)
      isCancelled = operation.isCancelled
    }
  }

  init(_ core: OperationCore) {
    self.init(phase: core.lifecycle.phase, edition: core.ledger.edition, isCancelled: core.lifecycle.isCancelled)
  }
}

extension AsyncOperation {
  var groupInside: GroupOperation? { inside as? GroupOperation }

  /// Whether this is a group that has not started and is not the private group of another operation.
  fileprivate var isPendingGroup: Bool {
    if state != .pending { return false }
    let outer = core.withLock { $0.outer }
    return outer == nil || outer is GroupOperation
  }

  /// The group that runs the members, or the private operation by which this operation waits for one elsewhere.
  fileprivate var inside: AsyncOperation? { self is GroupOperation ? self : members.first }
}
