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

  var codeLines: [CodeLine] { lines.map(CodeLine.init) }

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
  let paragraphs: [[String]]

  init(firstLine: Int, lines: [Substring]) {
    self.firstLine = firstLine
    let isApart = { (line: Substring) in line.allSatisfy(\.isWhitespace) || line.contains(#/^(@testable )?import /#) }
    paragraphs = lines.split(whereSeparator: isApart).map { $0.map(String.init) }
  }

  /// Whether a file has all of the paragraphs, in their order, each as deep as it is there.
  func isIn(_ file: [CodeLine]) -> Bool {
    var rest = file[...]
    for paragraph in paragraphs {
      let paragraph = paragraph.map { CodeLine($0[...]) }
      guard let start = rest.indices.first(where: { Self.begins(rest[$0...], with: paragraph) }) else { return false }
      rest = rest[(start + paragraph.count)...]
    }
    return true
  }

  private static func begins(_ lines: ArraySlice<CodeLine>, with paragraph: [CodeLine]) -> Bool {
    guard lines.count >= paragraph.count, let first = lines.first else { return false }
    let offset = first.indentation - paragraph[0].indentation
    return zip(lines, paragraph).allSatisfy { $0.words == $1.words && $0.indentation - $1.indentation == offset }
  }
}

/// A line of code. A page may put comments below each other, which the formatter does not, so spaces do not count.
struct CodeLine: Sendable {
  let indentation: Int
  let words: [Substring]

  init(_ line: Substring) {
    indentation = line.prefix { $0 == " " }.count
    words = line.split(separator: " ")
  }
}

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
