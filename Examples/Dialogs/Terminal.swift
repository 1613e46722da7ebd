import ExampleSupport
import Foundation
import Operations

/// A screen with room for one dialog, and a keyboard.
@MainActor
final class Terminal {
  private var dialog: DialogOperation?
  private var waiter: CheckedContinuation<Void, Never>?
  /// Runs `readLine`, which blocks its thread.
  private let keyboard = DispatchQueue(label: "keyboard")

  /// Prints a line at once, because the reader of a pipe answers the questions.
  func write(_ line: String) {
    print(line)
    // The program reports at its end whether it could write.
    try? Command.flush()
  }

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

  /// Waits until the screen shows a dialog that has not been cancelled. Only one task may wait at a time.
  func settled() async {
    if let dialog, !dialog.isCancelled { return }
    await withCheckedContinuation { waiter = $0 }
  }

  /// Reads a line, answers the dialog that is on the screen by then, and waits for the response.
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

  /// Reads the next line. Returns nil at the end of the input.
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
