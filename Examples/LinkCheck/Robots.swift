import ExampleSupport
import Foundation
import Operations

/// The rules of robots.txt, loaded once for each host.
final class Robots: Sendable {
  private let browser: Browser
  private let queue = OperationQueue()
  private let domain = ExclusivityDomain()
  private let rules = Protected<[String: [String]]>([:])

  init(_ browser: Browser) { self.browser = browser }

  /// Whether a page may be visited. Pages that are requested while the file is loaded wait for the same operation.
  func allows(_ page: URL) async throws -> Bool {
    guard let file = URL(string: "/robots.txt", relativeTo: page)?.absoluteURL else { return true }
    let known = rules.withLock { $0[file.absoluteString] }
    let disallowed: [String]
    if let known {
      disallowed = known
    } else {
      disallowed = try await queue.run(sharing: ExclusivityKey("\(file)"), in: domain) { [self] in
        TaskOperation { [self] in
          let rules = Robots.disallowed(in: try await browser.text(of: file) ?? "")
          self.rules.withLock { $0[file.absoluteString] = rules }
          return rules
        }
      }
    }
    let path = page.path(percentEncoded: true)
    return !disallowed.contains { path.hasPrefix($0) }
  }

  /// The paths that all programs must not visit.
  private static func disallowed(in text: String) -> [String] {
    var (paths, isForAll) = ([String](), false)
    for line in text.split(whereSeparator: \.isNewline) {
      let parts = line.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)[0]
        .split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2 else { continue }
      switch parts[0].lowercased() {
      case "user-agent": isForAll = parts[1] == "*"
      case "disallow" where isForAll && !parts[1].isEmpty: paths.append(parts[1])
      default: break
      }
    }
    return paths
  }
}
