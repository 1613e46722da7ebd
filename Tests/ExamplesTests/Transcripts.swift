import Foundation

/// The console blocks of Examples/README.md: command lines and what they print.
struct Transcripts {
  private let outputs: [String: String]

  init() throws {
    let file = URL(filePath: #filePath).appending(path: "../../../Examples/README.md").standardized
    let page = try String(contentsOf: file, encoding: .utf8)
    var outputs: [String: String] = [:]
    var command: String?
    for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        command = nil
      } else if line.hasPrefix("$ ") {
        command = String(line.dropFirst(2))
        outputs[String(line.dropFirst(2))] = ""
      } else if let command {
        outputs[command, default: ""] += line + "\n"
      }
    }
    self.outputs = outputs
  }

  /// What the page says that the command line prints, or nil if the page does not show it.
  subscript(command: String) -> String? { outputs[command] }
}
