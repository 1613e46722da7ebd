import Foundation

/// A page, and the pages that it links to.
struct Page: Sendable {
  var url: URL?
  var links: [URL] = []

  /// Finds the links in a page. They are read without a parser, which is enough for an example.
  static func links(in data: Data, at url: URL) -> [URL] {
    let text = String(decoding: data, as: UTF8.self)
    let attribute = #/<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')/#.ignoresCase()
    return text.matches(of: attribute).compactMap { match in
      let link = (match.1 ?? match.2 ?? "").replacing("&amp;", with: "&")
      guard let target = URL(string: String(link), relativeTo: url), ["http", "https"].contains(target.scheme) else {
        return nil
      }
      return normalized(target)
    }
  }

  /// The address without its fragment, which does not name another page.
  static func normalized(_ url: URL) -> URL {
    guard var parts = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true) else { return url }
    parts.fragment = nil
    if parts.path.isEmpty { parts.path = "/" }
    return parts.url ?? url
  }
}
