import Testing

/// A file, line by line.
struct SourceText: Sendable, CustomTestStringConvertible {
  let path: String
  let lines: [Substring]

  init(path: String, text: String) {
    self.path = path
    lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  }

  var testDescription: String { path }

  /// The fenced blocks that say they are Swift, in Markdown and in comments for documentation.
  var codeBlocks: [CodeBlock] {
    let isComment = path.hasSuffix(".swift")
    var blocks: [CodeBlock] = []
    var open: (language: Substring, firstLine: Int, lines: [Substring])?
    for (index, line) in lines.enumerated() {
      guard let line = isComment ? Self.comment(in: line) : line else {
        open = nil
        continue
      }
      if line.drop(while: \.isWhitespace).hasPrefix("```") {
        if let block = open {
          if block.language == "swift" {
            blocks.append(CodeBlock(firstLine: block.firstLine, lines: block.lines))
          }
          open = nil
        } else {
          open = (line.drop { $0.isWhitespace || $0 == "`" }, index + 2, [])
        }
      } else {
        open?.lines.append(line)
      }
    }
    return blocks
  }

  private static func comment(in line: Substring) -> Substring? {
    let line = line.drop(while: \.isWhitespace)
    guard line.hasPrefix("///") else { return nil }
    return line.hasPrefix("/// ") ? line.dropFirst(4) : line.dropFirst(3)
  }
}
