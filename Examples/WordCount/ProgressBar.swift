import Foundation

/// A line on the terminal that fills as the work gets on.
struct ProgressBar {
  private static let width = 40
  private var shown = ""

  /// Draws until the updates end, and wipes itself out.
  static func follow(_ updates: AsyncStream<Double>) async {
    var bar = ProgressBar()
    for await fraction in updates { bar.show(fraction) }
    bar.write("\r\u{1B}[K")
  }

  private mutating func show(_ fraction: Double) {
    let fraction = min(max(fraction, 0), 1)
    let filled = Int(fraction * Double(ProgressBar.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: "·", count: ProgressBar.width - filled)
    let line = "\(bar) \(Int(fraction * 100)) %"
    if line == shown { return }
    write("\r" + line + "\u{1B}[K")
    shown = line
  }

  private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
