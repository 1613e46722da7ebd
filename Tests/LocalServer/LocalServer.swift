#if os(Linux)
import Foundation
package import OperationsTestSupport

/// A web server on this machine, with a thread for each connection.
package final class LocalServer: @unchecked Sendable {
  package enum Response: Sendable {
    case page(String)
    case status(Int, location: String? = nil)
    /// Sends the beginning of a page, and nothing more until the client closes the connection.
    case endless
  }

  /// The response to a path, at the n-th request for it, counted from 1.
  private let respond: @Sendable (_ path: String, _ visit: Int) -> Response
  private let lock = NSLock()
  private var visits: (counts: [String: Int], open: Int, mostOpen: Int) = ([:], 0, 0)
  private let listener: Int32
  private let port: Int
  package let requestsEndless = Gate()

  package init(_ respond: @escaping @Sendable (_ path: String, _ visit: Int) -> Response) throws {
    self.respond = respond
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe bind(listener, pointer, length) == 0 && listen(listener, 128) == 0
          && getsockname(listener, pointer, &length) == 0
      }
    }
    guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
    port = Int(UInt16(bigEndian: address.sin_port))
    Thread.detachNewThread { [self] in acceptConnections() }
  }

  package var address: String { "http://127.0.0.1:\(port)" }

  /// The number of requests for each path.
  package var counts: [String: Int] { lock.withLock { visits.counts } }

  /// The largest number of pages that were requested at once.
  package var mostOpen: Int { lock.withLock { visits.mostOpen } }

  package func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  private func acceptConnections() {
    while true {
      let connection = accept(listener, nil, nil)
      if connection < 0 { break }
      Thread.detachNewThread { [self] in
        serve(connection)
        close(connection)
      }
    }
    close(listener)
  }

  private func serve(_ connection: Int32) {
    var request: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while !request.contains([13, 10, 13, 10]) {
      let count = unsafe recv(connection, &buffer, buffer.count, 0)
      if count <= 0 { return }
      request += buffer.prefix(count)
    }
    let words = String(decoding: request, as: UTF8.self).split(separator: " ", maxSplits: 2)
    guard words.count > 1 else { return }
    let path = String(words[1])
    let visit = lock.withLock {
      visits.open += 1
      visits.mostOpen = max(visits.mostOpen, visits.open)
      visits.counts[path, default: 0] += 1
      return visits.counts[path, default: 0]
    }
    let response = respond(path, visit)
    // Ends before the response, because the client may send its next request as soon as it has arrived.
    if case .endless = response {} else { endVisit() }
    switch response {
    case .page(let text):
      reply("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(text.utf8.count)", text, to: connection)
    case .status(let code, let location):
      let location = location.map { "\r\nLocation: \($0)" } ?? ""
      reply("HTTP/1.1 \(code) x\r\nContent-Length: 0\(location)", "", to: connection)
    case .endless:
      reply("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000", "<html>", to: connection)
      requestsEndless.open()
      _ = unsafe recv(connection, &buffer, buffer.count, 0)
      endVisit()
    }
  }

  private func endVisit() { lock.withLock { visits.open -= 1 } }

  private func reply(_ head: String, _ body: String, to connection: Int32) {
    var bytes = Array("\(head)\r\nConnection: close\r\n\r\n\(body)".utf8)[...]
    while !bytes.isEmpty {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { return }
      bytes = bytes.dropFirst(count)
    }
  }
}
#endif
