import Foundation
import Operations
import OperationsTestSupport
import Testing

extension ExclusivityKey {
  static let alert: Self = "alert"
}

extension ExclusivityKey {
  static let camera: Self = "camera"  // spelled once
}

/// What of UIKit the page uses.
private enum Dialogs {
  enum Style { case `default`, alert }

  @MainActor
  class UIViewController {
    fileprivate(set) var presented: UIAlertController?

    func present(_ controller: UIAlertController, animated: Bool) {
      presented = controller
      controller.presenter = self
    }
  }

  final class UIAlertController: UIViewController {
    let message: String
    weak var presenter: UIViewController?
    private(set) var action: UIAlertAction?

    init(title: String?, message: String, preferredStyle: Style) { self.message = message }

    func addAction(_ action: UIAlertAction) { self.action = action }

    func dismiss(animated: Bool, completion: () -> Void) {
      presenter?.presented = nil
      completion()
    }
  }

  @MainActor
  struct UIAlertAction {
    let handler: (Self) -> Void

    init(title: String, style: Style, handler: @escaping (Self) -> Void) { self.handler = handler }
  }

  @MainActor
  final class Window {
    let rootViewController: UIViewController? = UIViewController()

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

/// The page MutualExclusion, the comments in Sources/Operations/Exclusivity and the section of the README.
///
/// The tests use the keys of the process one after another, because pages give `"alert"` different meanings.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MutualExclusionSnippets: Printing {
  private enum Database {}

  private final class RefreshToken: ResultOperation<Int>, @unchecked Sendable {
    init(_ session: Int) { super.init { session + 1 } }
  }

  private class Download: AsyncOperation, @unchecked Sendable { init(_ url: URL) { super.init() } }
  private final class Fetch: Download, @unchecked Sendable {}

  private let queue = OperationQueue()
  let printed = Journal<String>()
  private let urls = [URL(string: "https://a.example/1")!, URL(string: "https://b.example/2")!]
  private let alert = AsyncOperation()
  private let transfer = AsyncOperation()
  private let migration = AsyncOperation()
  private let read = AsyncOperation()
  private let write = AsyncOperation()

  @Test func comments() async {
    let (scan, download, call) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let url = "https://a.example"
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
    #expect([scan, download, migration, alert, transfer, read, write, call].allSatisfy { $0.isSuccessful })
  }

  @Test func readMe() async throws {
    let (newest, page, session) = (AsyncOperation(), AsyncOperation(), 1)
    queue.addOperation(alert.exclusive("alert"))  // never two at once, in any queue or group
    queue.addOperation(transfer.exclusive("account 1", "account 2"))  // all keys together, so no deadlock
    queue.addOperation(newest.exclusive("alert", policy: .replace))  // cancels the holders and waiters before it
    queue.addOperation(page.limited("host", to: 4).throttled("api", to: 10, per: .seconds(1)))
    queue.addOperation(read.shared("database"))  // beside other reads, never beside an exclusive write

    let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }  // one for all callers
    await queue.finished()
    #expect(token == 2 && [transfer, newest, page, read].allSatisfy { $0.isSuccessful })
  }

  @Test func keys() async throws {
    let (login, sync, member) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let (first, second) = (AsyncOperation(), AsyncOperation())
    let (group, block, from, to, session) = (GroupOperation(), BlockOperation {}, 1, 2, 1)

    queue.addOperation(alert.exclusive(.alert))
    queue.addOperation(transfer.exclusive("account \(from)", "account \(to)"))
    try await queue.run(migration.exclusive(ExclusivityKey(Database.self)))
    group.addOperation(member.exclusive(.alert))

    let update = GroupOperation("Update") { login.exclusive("session") ==> sync }

    queue.addOperations([group, update])
    queue.addOperation(read.shared("database"))
    queue.addOperation(write.exclusive("database"))

    queue.addOperation(GroupOperation([block]).exclusive("database"))

    let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }

    let domain = ExclusivityDomain()
    queue.addOperation(first.exclusive("store", in: domain))
    queue.addOperation(second.exclusive("store", in: domain))

    await queue.finished()
    let operations = [first, second, alert, transfer, migration, member, login, sync, read, write]
    #expect(operations.allSatisfy { $0.isSuccessful } && block.isFinished && token == 2)
  }

  @Test func keysInGroups() async throws {
    let (upload, download, crawl) = (AsyncOperation(), AsyncOperation(), GroupOperation())
    for url in urls {
      let page = Fetch(url)
        .limited("host \(url.host() ?? "")", to: 4)
        .throttled("requests", to: 10, per: .seconds(1))
      crawl.addOperation(page)
    }

    let sync = GroupOperation().named("Sync")
    sync.addOperation(upload.exclusive("account"))
    sync.addOperation(download.exclusive("account"))
    queue.addOperation(sync.exclusive("account"))
    try await queue.run(crawl)
    try await sync.completed()
    #expect(upload.isSuccessful && download.isSuccessful)
  }

  @Test func aHeldKey_isReportedAndDropsOthers() async throws {
    let (first, second, sync) = (Held().named("first"), operation("second"), operation("third"))
    queue.addOperation(first.exclusive(.alert).exclusive("sync"))
    queue.addOperation(second.exclusive(.alert))
    await first.begun.opened()

    print(ExclusivityDomain.shared.holders(of: .alert), ExclusivityDomain.shared.waiting(for: .alert))

    do {
      try await queue.run(sync.exclusive("sync", policy: .drop))
    } catch OperationError.Code.excluded {
      print("A sync is under way already.")
    }

    #expect(printed.entries == [#"["first"] ["second"]"#, "A sync is under way already."])
    #expect(sync.errors.map { "\($0)" } == ["“third” did not run because “first” has the key “sync”."])
    first.gate.open()
    await queue.finished()
  }

  @Test @MainActor func oneOfManyDialogsIsShown_untilItIsReplaced() async throws {
    let window = Dialogs.Window()
    let alerts = (0..<10).map { _ in Dialogs.show(in: window, on: queue) }
    for alert in alerts.dropFirst() { await alert.finished() }
    _ = await window.presents("No network")
    #expect(alerts[0].isExecuting && alerts.dropFirst().allSatisfy { $0.errors.first is OperationError })
    let last = Dialogs.Alert("Still no network", on: { window.rootViewController! })
    queue.addOperation(last.exclusive(.alert, policy: .replace))
    await alerts[0].finished()
    let action = try #require(await window.presents("Still no network").action)
    action.handler(action)
    try await last.completed()
  }
}
