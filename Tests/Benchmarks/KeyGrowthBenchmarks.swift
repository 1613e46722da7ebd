import Foundation
import Operations
import OperationsTestSupport

enum KeyGrowthBenchmarks {
  static let all: [Benchmark] = [
    .growth("keys-one-operation", "keys of one operation", of: 10_000) { count in
      let keys = (0..<count).map { ExclusivityKey("key \($0)") }
      run(GroupOperation((0..<2).map { _ in AsyncOperation().exclusive(keys, in: ExclusivityDomain()) }))
    },
    .growth("keys-own-limits", "operations at once under one key, each with its own limit", of: 2000) { count in
      let domain = ExclusivityDomain()
      let operations = zip(held(count), 0...).map { $0.limited("key", to: count + $1, in: domain) }
      runGroup(operations) { _ in for operation in operations { operation.finish() } }
    },
    .growth("keys-permitted", "permitted operations of a suspended queue that are cancelled", of: 1000) {
      permitted($0, untilOverdue: false)
    },
    .growth("keys-passed", "members of a suspended group, of two priorities, passed by as many", of: 1000) { count in
      let domain = ExclusivityDomain()
      let group = GroupOperation().started()
      group.isSuspended = true
      let members = (0..<count).map { index in
        let member = AsyncOperation().limited("key", to: count + 1, in: domain)
        if index.isMultiple(of: 2) { member.queuePriority = .high }
        return member
      }
      group.addOperations(members)
      run(GroupOperation((0..<count).map { _ in AsyncOperation().limited("key", to: count + 1, in: domain) }))
      group.isSuspended = false
      group.finish()
      group.waitUntilFinished()
    },
    .growth("keys-overdue", "overdue operations of a suspended queue that are cancelled", of: 1000) {
      permitted($0, untilOverdue: true)
    },
    .growth("keys-replace", "operations that replace each other and as many cancelled readers", of: 1000) {
      addBehindReaders($0, policy: .replace)
    },
    .growth("keys-drop-waiters", "operations that are dropped because of as many waiters", of: 1000) { count in
      // The waiters wait for the window of a throttle.
      let domain = ExclusivityDomain()
      func throttled() -> AsyncOperation { AsyncOperation().throttled("key", to: 1, per: .seconds(60), in: domain) }
      run(throttled())
      let waiters = GroupOperation((0..<count).map { _ in throttled() })
      OperationQueue().addOperation(waiters)
      while domain.waiting(for: "key").isEmpty { Thread.sleep(forTimeInterval: 0.0001) }
      run(GroupOperation((0..<count).map { _ in AsyncOperation().exclusive("key", policy: .drop, in: domain) }))
      waiters.cancel()
      waiters.waitUntilFinished()
    },
    .growth("keys-drop-holders", "operations that are dropped because of as many holders", of: 1000) {
      addBehindReaders($0, policy: .drop)
    },
    .growth("keys-deadlock", "waiters before two groups whose members wait for each other", of: 2000) { count in
      let domain = ExclusivityDomain()
      let members = held(2)
      let groups = zip(members, ["a", "b"] as [ExclusivityKey]).map { member, key in
        GroupOperation([member]).exclusive(key, in: domain)
      }
      let waiters = GroupOperation((0..<count).map { _ in AsyncOperation().exclusive("a", "b", in: domain) })
      run(GroupOperation(groups), whenBegun: members) {
        OperationQueue().addOperation(waiters)
        while domain.waiting(for: "a").count < count { Thread.sleep(forTimeInterval: 0.0001) }
        groups[0].addOperation(AsyncOperation().exclusive("b", in: domain))
        groups[1].addOperation(AsyncOperation().exclusive("a", in: domain))
        for member in members { member.finish() }
      }
      waiters.waitUntilFinished()
    },
    .growth("keys-lines", "holders of a key, each with members that wait for it or another key", of: 1000) {
      waitInside($0, cancels: false)
    },
    .growth("keys-cancelled", "waiters inside a holder each, of which all but one are cancelled", of: 1000) {
      waitInside($0, cancels: true)
    },
    .growth("keys-groups", "groups under a key each, with one member each under one key", of: 1000) { count in
      let domain = ExclusivityDomain()
      let members = (0..<count).map { _ in AsyncOperation().exclusive("key", in: domain) }
      let groups = zip(members, 0...).map { GroupOperation([$0]).exclusive(ExclusivityKey("\($1)"), in: domain) }
      run(GroupOperation(groups))
    },
    .growth("keys-tasks", "tasks that wait in withKeys behind as many holders", of: 500) { count in
      let (domain, begun) = (ExclusivityDomain(), DispatchSemaphore(value: 0))
      let readers = held(count).map { $0.shared("key", in: domain) }
      runGroup(readers) { _ in
        let ended = startTasks(count) { _ in
          begun.signal()
          try await withKeys(.exclusive("key"), in: domain) {}
        }
        for _ in 0..<count { begun.wait() }
        for reader in readers { reader.finish() }
        ended.wait()
      }
    },
    .growth("keys-raised", "waiters behind as many holders, whose priority is raised", of: 500) {
      addBehindReaders($0) { for waiter in $0 { waiter.escalatePriority(to: .high) } }
    },
    .growth("keys-weights", "waiters for a key, each with its own weight", of: 1000) { count in
      let domain = ExclusivityDomain()
      wait((1...count).map { AsyncOperation().limited("key", to: count, weight: $0, in: domain) }, in: domain) {}
    },
    .growth("keys-expired", "waiters for a key whose wait limit ends", of: 1000) { count in
      let (domain, clock) = (ExclusivityDomain(), ManualClock())
      let waiters = (0..<count).map { index in
        let operation = AsyncOperation().exclusive("key", in: domain)
        (operation.clock, operation.waitLimit) = (clock, .milliseconds(index + 1))
        return operation
      }
      wait(waiters, in: domain) { clock.advance(by: .seconds(count)) }
    },
    .growth("keys-expired-behind", "waiters whose wait limit ends behind as many holders", of: 1000) { count in
      let clock = ManualClock()
      addBehindReaders(count, limit: .seconds(1), on: clock) { waiters in
        clock.advance(by: .seconds(1))
        for waiter in waiters { waiter.waitUntilFinished() }
      }
    },
    .growth("keys-pauses", "pauses and limits that a domain sets for a key with as many waiters", of: 1000) { count in
      let (domain, clock) = (ExclusivityDomain(), ManualClock())
      wait((0..<count).map { _ in AsyncOperation().limited("key", to: 2, in: domain) }, in: domain) {
        for index in 1...count {
          domain.pause("key", for: .milliseconds(index), clock: clock)
          domain.setLimit(1 + index % 2, for: "key")
        }
        clock.advance(by: .seconds(count))
      }
    },
  ]

  /// Operations that execute until they are told to finish.
  private static func held(_ count: Int) -> [AsyncOperation] { (0..<count).map { _ in AsyncBlockOperation { _ in } } }

  /// Runs a group of the operations and calls `body` when all of them execute.
  private static func runGroup(_ operations: [AsyncOperation], _ body: (GroupOperation) -> Void) {
    let group = GroupOperation(operations)
    run(group, whenBegun: operations) { body(group) }
  }

  private static func permitted(_ count: Int, untilOverdue: Bool) {
    let domain = ExclusivityDomain()
    let group = GroupOperation()
    group.isSuspended = true
    OperationQueue().addOperation(group)
    let operations = (0..<count).map { _ in AsyncOperation().throttled("key", to: count, per: .seconds(1), in: domain) }
    group.addOperations(operations)
    if untilOverdue {
      // An operation that waits, and gets the key when the others are overdue.
      run(AsyncOperation().exclusive("key", in: domain))
    }
    for operation in operations { operation.cancel() }
    group.isSuspended = false
    group.finish()
    group.waitUntilFinished()
  }

  /// Adds operations that want the key that as many readers hold until `body` has returned.
  private static func addBehindReaders(
    _ count: Int,
    policy: ExclusivityPolicy = .wait,
    limit: Duration? = nil,
    on clock: any Clock<Duration> = ContinuousClock(),
    _ body: ([AsyncOperation]) -> Void = { _ in }
  ) {
    let domain = ExclusivityDomain()
    let readers = held(count).map { $0.shared("key", in: domain) }
    runGroup(readers) { group in
      let others = (0..<count).map { _ in AsyncOperation().exclusive("key", policy: policy, in: domain) }
      for other in others { (other.clock, other.waitLimit) = (clock, limit) }
      group.addOperations(others)
      body(others)
      for reader in readers { reader.finish() }
    }
  }

  /// Waits in as many wait queues: those of the members of each holder.
  private static func waitInside(_ count: Int, cancels: Bool) {
    let domain = ExclusivityDomain()
    let first = held(1).map { $0.shared("other", in: domain) }
    let waiters = (0..<count).map { _ in AsyncOperation().exclusive("other", in: domain) }
    let readers = held(count).map { $0.shared("key", in: domain) }
    let begun = starts(of: readers)
    runGroup(first) { group in
      group.addOperations(zip(waiters, readers).map { GroupOperation([$0, $1]).shared("key", in: domain) })
      begun.wait()
      if cancels { for waiter in waiters.dropLast() { waiter.cancel() } }
      for operation in first + readers { operation.finish() }
    }
  }

  /// Lets operations that wait for a key do so while `body` runs.
  private static func wait(_ waiters: [AsyncOperation], in domain: ExclusivityDomain, _ body: () -> Void) {
    let first = held(1).map { $0.exclusive("key", in: domain) }
    runGroup(first) { group in
      group.addOperations(waiters)
      body()
      first[0].finish()
    }
  }
}
