import Operations

extension ExclusivityKey {
  /// Whoever holds it is on the screen.
  static let dialog: Self = "dialog"
}

/// Asks whether to try again. It is executing until it has been answered, and holds no thread meanwhile.
final class DialogOperation: MainOperation, @unchecked Sendable {
  /// What could not be loaded.
  let subject: String
  private let terminal: Terminal
  private let respond: @MainActor (_ isYes: Bool) async -> Void

  @MainActor private(set) var wasShown = false
  @MainActor private(set) var answer: Bool?

  /// - Parameter respond: Does what the answer asks for.
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

  /// It has been replaced. The other one waits for this one's end.
  override func didCancel() {
    Task { @MainActor in
      terminal.dismiss(self)
      finish()
    }
  }

  /// It ends when the response has: the next dialog comes after that.
  @MainActor func end(answering isYes: Bool) async {
    answer = isYes
    await respond(isYes)
    finish()
  }
}
