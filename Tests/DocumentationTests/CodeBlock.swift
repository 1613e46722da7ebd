/// Code that a page shows.
struct CodeBlock: Sendable {
  /// Where it begins in its page; the first line of a file is 1.
  let firstLine: Int
  /// What empty lines part. In a snippet there may be something in between: what belongs at the top of a file and what
  /// belongs into a function stand together in a page.
  let paragraphs: [[String]]

  init(firstLine: Int, lines: [Substring]) {
    self.firstLine = firstLine
    paragraphs = lines.split { $0.allSatisfy(\.isWhitespace) }.map { $0.map(String.init) }
  }

  /// Whether a file has all of the paragraphs, in their order, each as deep as it is there.
  func isIn(_ file: SourceText) -> Bool {
    var rest = file.lines[...]
    for paragraph in paragraphs {
      guard let start = rest.indices.first(where: { Self.begins(rest[$0...], with: paragraph) }) else { return false }
      rest = rest[(start + paragraph.count)...]
    }
    return true
  }

  private static func begins(_ lines: ArraySlice<Substring>, with paragraph: [String]) -> Bool {
    guard lines.count >= paragraph.count, let first = lines.first else { return false }
    let offset = indentation(of: first) - indentation(of: paragraph[0][...])
    return zip(lines, paragraph).allSatisfy { line, expected in
      words(of: line) == words(of: expected[...]) && indentation(of: line) - indentation(of: expected[...]) == offset
    }
  }

  private static func indentation(of line: Substring) -> Int { line.prefix { $0 == " " }.count }

  /// A page may put comments below each other, which the formatter does not.
  private static func words(of line: Substring) -> [Substring] { line.split(separator: " ") }
}
