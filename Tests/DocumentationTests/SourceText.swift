import Foundation
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

  /// The words and signs of each line.
  var codeLines: [[Substring]] { lines.map(\.tokens) }

  /// The fenced Swift blocks, in Markdown and in doc comments.
  var codeBlocks: [CodeBlock] { blocks(of: "swift") }

  /// The fenced blocks in a language, or in any.
  func blocks(of language: Substring? = nil) -> [CodeBlock] {
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
          if language == nil || block.language == language {
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

/// Code that a page shows.
struct CodeBlock: Sendable {
  /// The line of its page at which it begins, counted from 1.
  let firstLine: Int
  /// The parts between empty lines. A page shows code of the top level and code of a function in one block. A snippet
  /// may have other code between these parts, and has its own imports.
  let paragraphs: [[Substring]]

  init(firstLine: Int, lines: [Substring]) {
    self.firstLine = firstLine
    let isApart = { (line: Substring) in line.allSatisfy(\.isWhitespace) || line.contains(#/^(@testable )?import /#) }
    paragraphs = lines.split(whereSeparator: isApart).map { Array($0) }
  }

  /// Whether a file has all of the paragraphs, in their order. The lines of a page are shorter than those of a file, so
  /// each paragraph is whole lines of the file, but other ones.
  func isIn(_ file: [[Substring]]) -> Bool {
    var rest = file[...]
    for paragraph in paragraphs {
      let tokens = paragraph.flatMap(\.tokens)
      let ends = rest.indices.lazy.compactMap { Self.end(of: tokens, in: rest[$0...]) }
      guard let end = ends.first else { return false }
      rest = rest[end...]
    }
    return true
  }

  /// Returns the end of the first lines if they are these tokens.
  private static func end(of tokens: [Substring], in lines: ArraySlice<[Substring]>) -> Int? {
    var rest = tokens[...]
    let end = lines.firstIndex { line in
      guard rest.starts(with: line) else { return true }
      rest = rest.dropFirst(line.count)
      return rest.isEmpty
    }
    return rest.isEmpty ? end.map { $0 + 1 } : nil
  }
}

extension Substring { fileprivate var tokens: [Substring] { matches(of: #/\w+|[^\w\s]/#).map(\.output) } }

/// The files that these tests read: those of the checkout they were compiled from.
enum Repository {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The files that can contain code blocks.
  static func pages() throws -> [SourceText] {
    try ["README.md", "Examples/README.md", ".github/CONTRIBUTING.md"].map(file)
      + files(in: "Sources", ending: "md") + files(in: "Sources", ending: "swift")
  }

  static func files(in folder: String, ending: String) throws -> [SourceText] {
    let base = root.appending(path: folder)
    return try FileManager.default.subpathsOfDirectory(atPath: base.path).sorted()
      .filter { $0.hasSuffix("." + ending) }
      .map { try file("\(folder)/\($0)") }
  }

  static func file(_ path: String) throws -> SourceText {
    SourceText(path: path, text: try String(contentsOf: root.appending(path: path), encoding: .utf8))
  }
}
