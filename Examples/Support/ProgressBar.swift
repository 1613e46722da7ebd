import Foundation

/// A progress bar on standard error.
package struct ProgressBar {
  private static let width = 40
  private var shown = ""

  /// Draws the updates until they end, and then erases the bar.
  ///
  /// - Returns: The drawing task, or nil if standard error is not a terminal.
  package static func start(following updates: AsyncStream<Double>) -> Task<Void, Never>? {
    if isatty(STDERR_FILENO) != 1 { return nil }
    return Task {
      var bar = ProgressBar()
      for await fraction in updates { bar.show(fraction) }
      Command.write("\r\u{1B}[K")
    }
  }

  private mutating func show(_ fraction: Double) {
    let fraction = min(max(fraction, 0), 1)
    let filled = Int(fraction * Double(ProgressBar.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: "·", count: ProgressBar.width - filled)
    let line = "\(bar) \(Int(fraction * 100)) %"
    if line == shown { return }
    Command.write("\r" + line + "\u{1B}[K")
    shown = line
  }
}
