import Foundation
import Operations
import OperationsTestSupport
import Testing

extension ExclusivityKey {
  static let camera: Self = "camera"  // spelled once
}

/// The code in the comments of Sources/Operations/Exclusivity.
extension SharedDomainSnippets {
  @Suite(.timeLimit(.minutes(5)))
  struct ExclusivityComments {
    private enum Database {}

    private final class RefreshToken: TaskOperation<String>, @unchecked Sendable {
      private let session: String

      init(_ session: String) {
        self.session = session
        super.init(priority: nil)
      }

      override func run() async throws -> String { "token of \(session)" }
    }

    private let queue = OperationQueue()

    @Test func keys() async {
      let (scan, download, migration) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
      let url = "https://example.org"

      queue.addOperation(scan.exclusive(.camera))
      queue.addOperation(download.exclusive("download \(url)"))
      queue.addOperation(migration.exclusive(ExclusivityKey(Database.self)))

      await queue.finished()
      #expect([scan, download, migration].allSatisfy { $0.isSuccessful })
    }

    @Test func theVerb() async {
      let (alert, transfer) = (AsyncOperation(), AsyncOperation())

      queue.addOperation(alert.exclusive("alert"))
      queue.addOperation(transfer.exclusive("account 1", "account 2"))

      await queue.finished()
      #expect(alert.isSuccessful && transfer.isSuccessful)
    }

    private final class Download: AsyncOperation, @unchecked Sendable {
      init(_ url: URL) { super.init() }
    }

    @Test func theModes() async throws {
      let (read, write, call) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
      let urls = ["https://a.example/1", "https://a.example/2"].compactMap { URL(string: $0) }

      queue.addOperation(read.shared("database"))  // beside other reads
      queue.addOperation(write.exclusive("database"))  // alone

      for url in urls { queue.addOperation(Download(url).limited("host \(url.host()!)", to: 4)) }

      queue.addOperation(call.throttled("api", to: 10, per: .seconds(1)))

      await queue.finished()
      #expect([read, write, call].allSatisfy { $0.isSuccessful })
    }

    @Test func sharing() async throws {
      let session = "me"

      let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }

      #expect(token == "token of me")
    }
  }
}
