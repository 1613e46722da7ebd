import Foundation
import Operations

/// The launch of an app that loads several things at once without a network.
@MainActor
final class Launch {
  private static let subjects = ["profile", "messages", "photos", "settings"]

  let policy: ExclusivityPolicy
  /// All dialogs of the launch, in the order in which they were added.
  private(set) var dialogs: [DialogOperation] = []

  private let terminal: Terminal
  private let queue = OperationQueue()
  /// Keeps the dialogs of one launch apart from those of the others. An app uses the shared domain.
  private let domain = ExclusivityDomain()

  init(policy: ExclusivityPolicy, on terminal: Terminal) {
    self.policy = policy
    self.terminal = terminal
  }

  func run() async {
    await load()
    let waiting = domain.waiting(for: .dialog)
    if !waiting.isEmpty { terminal.write("waiting: " + waiting.joined(separator: ", ")) }
    while dialogs.contains(where: { !$0.isFinished }) { await terminal.handOverLine() }
  }

  /// Runs loads that all fail at once.
  ///
  /// Handles each failure after the previous one has had its effect on the screen, so that every launch prints the
  /// same.
  private func load() async {
    let loads = Launch.subjects.map { LoadOperation($0, isNetworkUp: false) }
    queue.addOperations(loads)
    for load in loads {
      do { try await load.completed() } catch {
        ask(about: load.subject)
        await terminal.settled()
      }
    }
  }

  private func ask(about subject: String) {
    let dialog = DialogOperation(about: subject, on: terminal) { [weak self] isYes in
      await self?.respond(to: isYes, about: subject)
    }
    dialogs.append(dialog)
    queue.addOperation(dialog.exclusive(.dialog, policy: policy, in: domain))
    for error in dialog.errors { terminal.write("\(subject): dropped. \(error.localizedDescription)") }
  }

  private func respond(to isYes: Bool, about subject: String) async {
    guard isYes else { return terminal.write("\(subject): given up") }
    do {
      try await queue.run(LoadOperation(subject, isNetworkUp: true))
      terminal.write("\(subject): loaded")
    } catch { terminal.write("\(subject): \(error.localizedDescription)") }
  }
}
