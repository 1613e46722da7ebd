import ExampleSupport
import Foundation

/// What a crawl has found.
struct Report {
  struct BrokenLink {
    let url: URL
    let reason: String
    /// The pages with the link, without repetitions.
    let pages: [String]

    init(url: URL, reason: String, pages: [URL]) {
      self.url = url
      self.reason = reason
      self.pages = Set(pages.map(\.absoluteString)).sorted()
    }
  }

  private struct JSON: Encodable {
    struct Link: Encodable {
      let url: String
      let reason: String
      let pages: [String]
    }

    let visited: Int
    let broken: [Link]
  }

  let visited: Int
  /// The broken links, sorted.
  let broken: [BrokenLink]
  /// Why the first page could not be requested.
  let startError: (any Error)?

  init(visited: Int, broken: [BrokenLink], startError: (any Error)?) {
    self.visited = visited
    self.broken = broken.sorted { $0.url.absoluteString < $1.url.absoluteString }
    self.startError = startError
  }

  var table: String {
    let links = broken.map { link in
      let pages = link.pages.map { "  on \(Command.printable($0))\n" }.joined()
      return "\(Command.printable(link.url.absoluteString)): \(link.reason)\n\(pages)"
    }
    let pages = visited == 1 ? "1 page" : "\(visited) pages"
    return links.joined() + "\(pages), " + (broken.count == 1 ? "1 broken link" : "\(broken.count) broken links")
  }

  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let links = broken.map { JSON.Link(url: $0.url.absoluteString, reason: $0.reason, pages: $0.pages) }
    return String(decoding: try encoder.encode(JSON(visited: visited, broken: links)), as: UTF8.self)
  }
}
