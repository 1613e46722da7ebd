import Foundation
import Operations
import OperationsTestSupport
import Testing

private let printed = Journal<String>()

private func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) }

extension ExclusivityKey {
  static let alert: Self = "alert"
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

extension SharedDomainSnippets {
  @Suite(.timeLimit(.minutes(5)))
  struct MutualExclusionSnippets {
    private enum Database {}

    private final class RefreshToken: TaskOperation<Int>, @unchecked Sendable {
      private let session: Journal<String>

      init(_ session: Journal<String>) {
        self.session = session
        super.init(priority: nil)
      }

      override func run() async throws -> Int {
        session.write("refreshed")
        return session.count
      }
    }

    /// Writes its name at its beginning, and ends when its gate is opened.
    private final class Held: AsyncOperation, @unchecked Sendable {
      let (begun, gate) = (Gate(), Gate())

      override func execute() {
        begun.open()
        gate.whenOpen { self.finish() }
      }
    }

    private let queue = OperationQueue()

    @Test func keys() async throws {
      let (alert, transfer, migration, member) = (Held(), AsyncOperation(), AsyncOperation(), Held())
      let (from, to) = (1, 2)
      let group = GroupOperation()

      queue.addOperation(alert.exclusive(.alert))
      queue.addOperation(transfer.exclusive("account \(from)", "account \(to)"))
      try await queue.run(migration.exclusive(ExclusivityKey(Database.self)))
      group.addOperation(member.exclusive(.alert))

      await alert.begun.opened()
      queue.addOperation(group)
      #expect(!member.begun.isOpen)
      alert.gate.open()
      await member.begun.opened()
      #expect(alert.isFinished)
      member.gate.open()
      await queue.finished()
    }

    private final class Fetch: ResultOperation<URL>, @unchecked Sendable {
      private let url: URL

      init(_ url: URL) {
        self.url = url
        super.init()
      }

      override func execute() { finish(returning: url) }
    }

    @Test func keysInABuilder() async throws {
      let (login, sync) = (AsyncOperation(), AsyncOperation())

      let update = GroupOperation("Update") { login.exclusive("session") ==> sync }

      try await queue.run(update)
      #expect(update.isSuccessful && login.isSuccessful)
    }

    @Test func readersAndWriters() async throws {
      let (read, write, other) = (Held(), Held(), Held())
      queue.addOperation(other.shared("database"))

      queue.addOperation(read.shared("database"))
      queue.addOperation(write.exclusive("database"))

      await other.begun.opened()
      await read.begun.opened()
      #expect(!write.begun.isOpen)
      for operation in [read, write, other] { operation.gate.open() }
      await write.finished()
    }

    @Test func aCrawler() async throws {
      let urls = ["https://a.example/1", "https://b.example/2"].compactMap { URL(string: $0) }
      let crawl = GroupOperation().named("Crawl")

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
      let shown = Dialogs.show(in: window, on: queue)
      let dropped = (0..<9).map { _ in Dialogs.show(in: window, on: queue) }
      for alert in dropped { await alert.finished() }
      while window.rootViewController?.presented == nil { await Task.yield() }
      let alert = try #require(window.rootViewController?.presented)
      #expect(alert.message == "No network" && shown.isExecuting)
      alert.choose(0)
      try await shown.completed()
      #expect(dropped.allSatisfy { $0.errors.first is OperationError })
    }

    @Test @MainActor func aDialogIsReplaced() async throws {
      let window = Dialogs.Window()
      let first = Dialogs.show(in: window, on: queue)
      while window.rootViewController?.presented == nil { await Task.yield() }
      let second = Dialogs.Alert("Still no network", on: { window.rootViewController! })
      queue.addOperation(second.exclusive(.alert, policy: .replace))
      await first.finished()
      while window.rootViewController?.presented?.message != "Still no network" { await Task.yield() }
      second.cancel()
      await second.finished()
      #expect(window.rootViewController?.presented == nil)
    }

    @Test func sharing() async throws {
      let (queue, session) = (queue, Journal<String>())

      let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }

      #expect(token == 1)
      let all = try await withThrowingTaskGroup { tasks in
        for _ in 0..<10 { tasks.addTask { try await queue.run(sharing: "refresh token") { RefreshToken(session) } } }
        return try await tasks.reduce(into: []) { $0.append($1) }
      }
      #expect(all.count == 10 && session.count <= 11)
    }

    @Test func whatIsInsideAGroupThatHoldsTheKey() async throws {
      let (upload, download) = (Held(), Held())

      let sync = GroupOperation().named("Sync")
      sync.addOperation(upload.exclusive("account"))
      sync.addOperation(download.exclusive("account"))
      queue.addOperation(sync.exclusive("account"))

      await upload.begun.opened()
      #expect(!download.begun.isOpen)
      upload.gate.open()
      await download.begun.opened()
      download.gate.open()
      try await sync.completed()
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

    @Test func aTimeoutFreesTheKey() async {
      let (clock, holder, next) = (ManualClock(), Held(), AsyncOperation())
      (holder.clock, holder.timeout) = (clock, .seconds(30))
      let domain = ExclusivityDomain()
      queue.addOperation(holder.exclusive("store", in: domain))
      queue.addOperation(next.exclusive("store", in: domain))
      await clock.waitForSleepers()
      clock.advance(by: .seconds(30))
      await next.finished()
      holder.gate.open()
      #expect(next.isSuccessful)
    }
  }
}
