import Foundation
import Operations

/// Two groups that run for as long as the round does, each fed by a thread: with operations and repetitions, some under
/// a key, plain operations that are cancelled while they wait, and graphs that share operations with the other group.
final class SoakFeed: Sendable {
  private let world: SoakWorld
  private let groups = [GroupOperation().named("feed 0"), GroupOperation().named("feed 1")]
  private let domain = ExclusivityDomain()

  init(_ world: SoakWorld) { self.world = world }

  func run() async {
    let staying = groups.map { _ in AsyncBlockOperation { _ in } }
    let logins = (0..<5).map { index in AsyncBlockOperation { $0.finish() }.named("login \(index)") }
    for (group, member) in zip(groups, staying) {
      group.addOperation(member)
      OperationQueue().addOperation(group)
    }
    groups[1].maxConcurrentOperationCount = 3
    let made = await withTaskGroup(of: [Operation].self) { tasks in
      for index in groups.indices { tasks.addTask { await onNewThread { self.feed(index, logins) } } }
      return await tasks.reduce(into: []) { $0 += $1 }
    }
    for member in staying { member.finish() }
    for group in groups { await group.finished() }
    for operation in made where !operation.isFinished {
      world.log.report("\(operation.name ?? "") was fed to a group and has not finished")
    }
  }

  private func feed(_ index: Int, _ logins: [AsyncOperation]) -> [Operation] {
    var generator = SeededGenerator(seed: world.plan.seed &+ UInt64(index))
    let group = groups[index]
    var (made, shared): ([Operation], [Operation]) = ([], [])
    for step in 0..<80 {
      let token = LiveCount.Token(world.live)
      let operation: Operation =
        if generator.one(of: 2) {
          BlockOperation { withExtendedLifetime(token) {} }
        } else if generator.one(of: 4) {
          RepeatOperation { iteration in iteration > 3 ? nil : Self.block(token) }
        } else {
          Self.block(token)
        }
      let own = operation as? AsyncOperation
      if generator.one(of: 4) { own?.limited("feed", to: 2, in: domain) }
      operation.name = "\(index).\(step)"
      for earlier in made.suffix(8) where generator.one(of: 4) { earlier ==> operation }
      if let own, generator.one(of: 4), let login = logins.randomElement(using: &generator) {
        login ==> own
        group.addGraph(endingIn: own)
        shared.append(login)
      } else {
        group.addOperation(operation)
      }
      made.append(operation)
      if generator.one(of: 4), let victim = made.suffix(10).randomElement(using: &generator) {
        if generator.one(of: 2) { victim.cancel() } else { group.cancelOperations(named: victim.name ?? "") }
      }
      if generator.one(of: 10) { group.isSuspended.toggle() }
      if generator.one(of: 20) { _ = group.stallReport() }
    }
    group.isSuspended = false
    return made + shared
  }

  private static func block(_ token: LiveCount.Token) -> AsyncOperation {
    AsyncBlockOperation { operation in withExtendedLifetime(token) { operation.finish() } }
  }
}
