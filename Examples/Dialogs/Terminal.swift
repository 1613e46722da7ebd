import Foundation
import Operations

/// A screen with room for one dialog, and a keyboard.
@MainActor
final class Terminal {
  private var dialog: DialogOperation?
  private var waiter: CheckedContinuation<Void, Never>?
  /// Waits for lines on a thread of its own, for the main thread and the operations' have other things to do.
  private let keyboard = DispatchQueue(label: "keyboard")

  /// Not with `print`, which keeps back what goes to a pipe: somebody may wait for a question there.
  func write(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }

  func show(_ dialog: DialogOperation) {
    self.dialog = dialog
    ask(dialog)
    waiter?.resume()
    waiter = nil
  }

  func dismiss(_ dialog: DialogOperation) {
    guard self.dialog === dialog else { return }
    self.dialog = nil
    write("\(dialog.subject): dismissed")
  }

  /// Waits until there is a dialog on the screen that is not about to go. Only one task at a time may wait.
  func settled() async {
    if let dialog, !dialog.isCancelled { return }
    await withCheckedContinuation { waiter = $0 }
  }

  /// Hands the next line to the dialog that is on the screen by then, and waits for what it does.
  func handOverLine() async {
    await settled()
    let line = await line()
    guard let dialog else { return }
    switch line?.lowercased() {
    case "y": await end(dialog, answering: true)
    case "n", nil: await end(dialog, answering: false)
    default: ask(dialog)
    }
  }

  /// The next line, or nil at the end of the input.
  private func line() async -> String? {
    await withCheckedContinuation { continuation in
      keyboard.async { continuation.resume(returning: readLine()) }
    }
  }

  private func ask(_ dialog: DialogOperation) {
    write("\(dialog.subject) could not be loaded. Try again? [y/n]")
  }

  private func end(_ dialog: DialogOperation, answering isYes: Bool) async {
    self.dialog = nil
    await dialog.end(answering: isYes)
  }
}
