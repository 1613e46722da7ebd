import Foundation
import Operations

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Loads pages.
final class Browser: Sendable {
  private static let redirectLimit = 10
  private let session: URLSession

  init() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 100
    session = URLSession(configuration: configuration, delegate: StopsRedirects(), delegateQueue: nil)
  }

  deinit { session.invalidateAndCancel() }

  /// Loads a page and finds its links.
  func load(_ url: URL) async throws -> Page {
    let (data, response) = try await follow(url, with: "GET")
    let isHTML = response.value(forHTTPHeaderField: "Content-Type")?.contains("html") == true
    return Page(url: url, links: isHTML ? Page.links(in: data, at: response.url ?? url) : [])
  }

  /// Checks that a page exists.
  func probe(_ url: URL) async throws -> Page {
    do { _ = try await follow(url, with: "HEAD") } catch let error as BadStatus where [405, 501].contains(error.code) {
      _ = try await follow(url, with: "GET")
    }
    return Page(url: url)
  }

  /// The text of a file, or nil if there is none.
  func text(of url: URL) async throws -> String? {
    do { return String(decoding: try await follow(url, with: "GET").data, as: UTF8.self) } catch is BadStatus {
      return nil
    }
  }

  /// Whether another attempt may succeed.
  static func isTemporary(_ error: any Error, attempt: Int) -> Bool {
    switch error {
    case let error as BadStatus: error.code >= 500 || error.code == 429
    case OperationError.Code.timedOut: true
    case let error as URLError: [.timedOut, .networkConnectionLost].contains(error.code)
    default: false
    }
  }

  private func follow(_ url: URL, with method: String) async throws -> (data: Data, response: HTTPURLResponse) {
    var (url, seen) = (url, Set<URL>())
    while seen.insert(url).inserted, seen.count <= Browser.redirectLimit {
      var request = URLRequest(url: url)
      request.httpMethod = method
      let (data, response) = try await session.data(for: request)
      guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
      if (300..<400).contains(response.statusCode), let place = response.value(forHTTPHeaderField: "Location"),
        let next = URL(string: place, relativeTo: url)
      {
        url = next.absoluteURL
        continue
      }
      guard (200..<300).contains(response.statusCode) else { throw BadStatus(code: response.statusCode) }
      return (data, response)
    }
    throw EndlessRedirect()
  }
}

/// Returns redirections to the caller, which follows them itself and detects loops.
private final class StopsRedirects: NSObject, URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}

/// A response that is not a success.
struct BadStatus: LocalizedError {
  let code: Int

  var errorDescription: String? { "\(code) \(HTTPURLResponse.localizedString(forStatusCode: code))" }
}

struct EndlessRedirect: LocalizedError {
  var errorDescription: String? { "endless redirection" }
}
