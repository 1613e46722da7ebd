import ExampleSupport
import Foundation
import Operations

/// Visits the pages of a site, each once, and collects the links that are broken.
///
/// Every page is a member of the group, which adds the pages that the page links to. The keys of a member limit how
/// many pages are loaded at once from a host, and how many in a second.
final class CrawlOperation: GroupOperation, @unchecked Sendable {
  struct Settings: Sendable {
    /// The number of pages to load at once from a host.
    var limit = 4
    /// The number of pages to load in a second from a host.
    var rate = 50
    /// The time for each attempt to load a page.
    var timeout = Duration.seconds(10)
  }

  private struct State {
    /// The pages that link to a page, for all pages found.
    var referrers: [URL: [URL]] = [:]
    var pages: [ObjectIdentifier: URL] = [:]
    var visited = 0
    var failures: [URL: any Error] = [:]
  }

  private let start: URL
  private let loader: PageLoader
  private let findings = Protected(State())

  init(from start: URL, settings: Settings) {
    self.start = start
    loader = PageLoader(start: start, settings: settings)
    super.init("crawl") {}
    visit(start, linkedFrom: nil)
  }

  /// What has been found so far, even after a cancellation.
  var report: Report {
    findings.withLock { state in
      let broken = state.failures.map { url, error in
        Report.BrokenLink(url: url, reason: error.localizedDescription, pages: state.referrers[url] ?? [])
      }
      let startError = state.failures[start].flatMap { $0 is BadStatus ? nil : $0 }
      return Report(visited: state.visited, broken: broken, startError: startError)
    }
  }

  private func visit(_ url: URL, linkedFrom page: URL?) {
    let isNew = findings.withLock { state in
      let isNew = state.referrers[url] == nil
      state.referrers[url, default: []] += page.map { [$0] } ?? []
      return isNew
    }
    guard isNew else { return }
    let backoff = Backoff.exponential(initial: .milliseconds(100), cap: .seconds(2), jitter: 0.1)
    let visit = RetryOperation(attempts: 3, backoff: backoff, retryIf: Browser.isTemporary) { [loader] _ in
      loader.load(url)
    }
    visit.named(url.absoluteString)
    findings.withLock { $0.pages[ObjectIdentifier(visit)] = url }
    addOperation(visit)
  }

  /// Follows the links of a page, or notes why it could not be loaded. A broken link is no failure of the crawl.
  override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
    guard let visit = member as? RetryOperation<Page>, let result = visit.result else { return [] }
    let page = findings.withLock { state -> Page? in
      guard let url = state.pages.removeValue(forKey: ObjectIdentifier(visit)) else { return nil }
      switch result {
      case .success(let page):
        state.visited += 1
        return page
      case .failure(let error):
        if !visit.isCancelled || !isCancelled { state.failures[url] = error }
        return nil
      }
    }
    if let page, !isCancelled { for link in page.links { self.visit(link, linkedFrom: page.url) } }
    return []
  }
}

/// Makes the operations that load pages. They capture the loader instead of the crawl, which may end before them.
private struct PageLoader: Sendable {
  let start: URL
  let settings: CrawlOperation.Settings
  private let browser = Browser()
  private let robots: Robots

  init(start: URL, settings: CrawlOperation.Settings) {
    self.start = start
    self.settings = settings
    robots = Robots(browser)
  }

  func load(_ url: URL) -> ResultOperation<Page> {
    let isInside = url.host() == start.host() && url.port == start.port
    let load = TaskOperation { [browser, robots] in
      if !isInside { return try await browser.probe(url) }
      return try await robots.allows(url) ? try await browser.load(url) : Page()
    }
    load.timeout = settings.timeout
    let key = ExclusivityKey("host \(url.host() ?? ""):\(url.port ?? 0)")
    return load.limited(key, to: settings.limit).throttled(key, to: settings.rate, per: .seconds(1))
  }
}
