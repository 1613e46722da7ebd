import Operations

extension ExclusivityKey {
  /// The key that the dialog on the screen holds.
  static let dialog: Self = "dialog"
}

/// Asks whether to try again.
///
/// The operation executes until the dialog has been answered, and occupies no thread meanwhile.
final class DialogOperation: MainOperation, @unchecked Sendable {
  /// What could not be loaded.
  let subject: String
  private let terminal: Terminal
  private let respond: @MainActor (_ isYes: Bool) async -> Void

  @MainActor private(set) var wasShown = false
  @MainActor private(set) var answer: Bool?

  /// - Parameter respond: Carries out the answer.
  init(about subject: String, on terminal: Terminal, respond: @escaping @MainActor (_ isYes: Bool) async -> Void) {
    self.subject = subject
    self.terminal = terminal
    self.respond = respond
    super.init()
    named(subject)
  }

  override func executeOnMain() {
    wasShown = true
    terminal.show(self)
  }

  /// Removes the dialog, because a newer one replaces it. The newer one starts when this one has finished.
  override func didCancel() {
    Task { @MainActor in
      terminal.dismiss(self)
      finish()
    }
  }

  /// Finishes after the response, so that the next dialog appears after it.
  @MainActor func end(answering isYes: Bool) async {
    answer = isYes
    await respond(isYes)
    finish()
  }
}
