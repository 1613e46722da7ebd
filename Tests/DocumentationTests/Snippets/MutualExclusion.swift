import Foundation
import Operations
import OperationsTestSupport
import Testing

private let printed = Journal<String>()

private func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) }

extension ExclusivityKey {
  static let alert: Self = "alert"
}

extension ExclusivityKey {
  static let camera: Self = "camera"  // spelled once
}

/// What of UIKit the page uses.
private enum Dialogs {
  @MainActor
  class UIViewController {
    var presented: UIAlertController?

    func present(_ controller: UIAlertController, animated: Bool) {
      presented = controller
      controller.presenter = self
    }

    func dismiss(animated: Bool, completion: @escaping () -> Void) { completion() }
  }

  final class UIAlertController: UIViewController {
    enum Style { case alert }

    let message: String
    weak var presenter: UIViewController?
    private(set) var actions: [UIAlertAction] = []

    init(title: String?, message: String, preferredStyle: Style) { self.message = message }

    func addAction(_ action: UIAlertAction) { actions.append(action) }

    /// Somebody chooses an action, upon which the alert goes.
    func choose(_ index: Int) {
      presenter?.presented = nil
      actions[index].handler(actions[index])
    }

    override func dismiss(animated: Bool, completion: @escaping () -> Void) {
      presenter?.presented = nil
      completion()
    }
  }

  @MainActor
  final class UIAlertAction {
    enum Style { case `default` }

    let handler: (UIAlertAction) -> Void

    init(title: String, style: Style, handler: @escaping (UIAlertAction) -> Void) { self.handler = handler }
  }

  @MainActor
  final class Window {
    var rootViewController: UIViewController? = UIViewController()

    func presents(_ message: String) async -> UIAlertController {
      while true {
        if let alert = rootViewController?.presented, alert.message == message { return alert }
        await Task.yield()
      }
    }
  }

  final class Alert: MainOperation, @unchecked Sendable {
    private let message: String
    private let presenter: @MainActor () -> UIViewController
    @MainActor private var controller: UIAlertController?

    init(_ message: String, on presenter: @escaping @MainActor () -> UIViewController) {
      self.message = message
      self.presenter = presenter
      super.init()
    }

    override func executeOnMain() {
      let controller = UIAlertController(title: nil, message: message, preferredStyle: .alert)
      controller.addAction(UIAlertAction(title: "OK", style: .default) { [self] _ in end() })
      self.controller = controller
      presenter().present(controller, animated: true)
    }

    // Replaced by another one: this one goes, and then that one comes.
    override func didCancel() {
      Task { @MainActor in
        guard let controller else { return finish() }
        controller.dismiss(animated: true) { self.end() }
      }
    }

    @MainActor private func end() {
      controller = nil  // or the two would keep each other
      finish()
    }
  }

  @MainActor
  static func show(in window: Window, on queue: OperationQueue) -> Alert {
    let alert = Alert("No network", on: { window.rootViewController! })
    queue.addOperation(alert.exclusive(.alert, policy: .drop))
    return alert
  }
}

/// Suites that use the keys of the process run one after another, because pages give `"alert"` different meanings.
@Suite(.serialized)
enum SharedDomainSnippets {}

extension SharedDomainSnippets {
  /// The page MutualExclusion, and the comments in Sources/Operations/Exclusivity.
  @Suite(.timeLimit(.minutes(5)))
  struct MutualExclusionSnippets {
    private enum Database {}

    private final class RefreshToken: ResultOperation<Int>, @unchecked Sendable {
      init(_ session: Int) { super.init { session + 1 } }
    }

    private typealias Held = TestingOperationsSnippets.Held

    private let queue = OperationQueue()

    private class Download: AsyncOperation, @unchecked Sendable {
      init(_ url: URL) { super.init() }
    }

    private final class Fetch: Download, @unchecked Sendable {}

    @Test func comments() async {
      let operations = (0..<8).map { _ in AsyncOperation() }
      let (scan, download, migration, alert) = (operations[0], operations[1], operations[2], operations[3])
      let (transfer, read, write, call) = (operations[4], operations[5], operations[6], operations[7])
      let url = "https://a.example"
      let urls = [URL(string: "\(url)/1")!, URL(string: "\(url)/2")!]

      queue.addOperation(scan.exclusive(.camera))
      queue.addOperation(download.exclusive("download \(url)"))
      queue.addOperation(migration.exclusive(ExclusivityKey(Database.self)))

      queue.addOperation(alert.exclusive("alert"))
      queue.addOperation(transfer.exclusive("account 1", "account 2"))

      queue.addOperation(read.shared("database"))  // beside other reads
      queue.addOperation(write.exclusive("database"))  // alone

      for url in urls { queue.addOperation(Download(url).limited("host \(url.host()!)", to: 4)) }

      queue.addOperation(call.throttled("api", to: 10, per: .seconds(1)))

      await queue.finished()
      #expect(operations.allSatisfy { $0.isSuccessful })
    }

    @Test func keys() async throws {
      let (alert, transfer, migration) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
      let (member, group, from, to) = (AsyncOperation(), GroupOperation(), 1, 2)

      queue.addOperation(alert.exclusive(.alert))
      queue.addOperation(transfer.exclusive("account \(from)", "account \(to)"))
      try await queue.run(migration.exclusive(ExclusivityKey(Database.self)))
      group.addOperation(member.exclusive(.alert))

      queue.addOperation(group)
      await queue.finished()
      #expect([alert, transfer, migration, member].allSatisfy { $0.isSuccessful })
    }

    @Test func keysInABuilder() async throws {
      let (login, sync) = (AsyncOperation(), AsyncOperation())

      let update = GroupOperation("Update") { login.exclusive("session") ==> sync }

      try await queue.run(update)
      #expect(login.isSuccessful)
    }

    @Test func readersAndWriters() async {
      let (read, write) = (AsyncOperation(), AsyncOperation())

      queue.addOperation(read.shared("database"))
      queue.addOperation(write.exclusive("database"))

      await queue.finished()
      #expect(read.isSuccessful && write.isSuccessful)
    }

    @Test func aCrawler() async throws {
      let urls = ["https://a.example/1", "https://b.example/2"].compactMap { URL(string: $0) }
      let crawl = GroupOperation()

      for url in urls {
        let page = Fetch(url)
          .limited("host \(url.host() ?? "")", to: 4)
          .throttled("requests", to: 10, per: .seconds(1))
        crawl.addOperation(page)
      }

      try await queue.run(crawl)
      #expect(crawl.isSuccessful)
    }

    @Test func aPlainOperation() async {
      let block = BlockOperation {}

      queue.addOperation(GroupOperation([block]).exclusive("database"))

      await queue.finished()
      #expect(block.isFinished)
    }

    @Test func whatIsDropped() async throws {
      let (first, sync) = (Held().named("first"), AsyncOperation().named("second"))
      queue.addOperation(first.exclusive("sync"))

      do {
        try await queue.run(sync.exclusive("sync", policy: .drop))
      } catch OperationError.Code.excluded {
        print("A sync is under way already.")
      }

      #expect(printed.entries.contains("A sync is under way already."))
      #expect(sync.errors.map { "\($0)" } == ["“second” did not run because “first” has the key “sync”."])
      first.gate.open()
      await queue.finished()
    }

    @Test @MainActor func oneOfManyDialogsIsShown() async throws {
      let window = Dialogs.Window()
      let alerts = (0..<10).map { _ in Dialogs.show(in: window, on: queue) }
      for alert in alerts.dropFirst() { await alert.finished() }
      let controller = await window.presents("No network")
      #expect(alerts[0].isExecuting && alerts.dropFirst().allSatisfy { $0.errors.first is OperationError })
      controller.choose(0)
      try await alerts[0].completed()
    }

    @Test @MainActor func aDialogIsReplaced() async throws {
      let window = Dialogs.Window()
      let first = Dialogs.show(in: window, on: queue)
      _ = await window.presents("No network")
      let second = Dialogs.Alert("Still no network", on: { window.rootViewController! })
      queue.addOperation(second.exclusive(.alert, policy: .replace))
      await first.finished()
      _ = await window.presents("Still no network")
      second.cancel()
      await second.finished()
      #expect(window.rootViewController?.presented == nil)
    }

    @Test func sharing() async throws {
      let session = 1

      let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }

      #expect(token == 2)
    }

    @Test func whatIsInsideAGroupThatHoldsTheKey() async throws {
      let (upload, download) = (AsyncOperation(), AsyncOperation())

      let sync = GroupOperation().named("Sync")
      sync.addOperation(upload.exclusive("account"))
      sync.addOperation(download.exclusive("account"))
      queue.addOperation(sync.exclusive("account"))

      try await sync.completed()
      #expect(upload.isSuccessful && download.isSuccessful)
    }

    @Test func looking() async {
      let (first, second) = (Held().named("first"), AsyncOperation().named("second"))
      queue.addOperation(first.exclusive(.alert))
      queue.addOperation(second.exclusive(.alert))
      await first.begun.opened()

      print(ExclusivityDomain.shared.holders(of: .alert), ExclusivityDomain.shared.waiting(for: .alert))

      #expect(printed.entries.contains(#"["first"] ["second"]"#))
      first.gate.open()
      await queue.finished()
    }

    @Test func aDomain() async {
      let (first, second) = (Held().named("first"), AsyncOperation().named("second"))

      let domain = ExclusivityDomain()
      queue.addOperation(first.exclusive("store", in: domain))
      queue.addOperation(second.exclusive("store", in: domain))

      await first.begun.opened()
      #expect(domain.waiting(for: "store") == ["second"] && ExclusivityDomain.shared.holders(of: "store").isEmpty)
      first.gate.open()
      await queue.finished()
    }
  }
}
