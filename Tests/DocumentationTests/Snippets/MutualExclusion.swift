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

    override func didCancel() {
      Task { @MainActor in
        guard let controller else { return finish() }
        controller.dismiss(animated: true) { self.end() }
      }
    }

    @MainActor private func end() {
      controller = nil  // break the retain cycle
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

/// The page MutualExclusion and the comments in Sources/Operations/Exclusivity.
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
    let (render, prompt) = (AsyncOperation(), AsyncOperation())
    let url = "https://a.example"
    let (save, document) = (AsyncOperation(), (id: UUID(), text: ""))
    queue.addOperation(scan.exclusive(.camera))
    queue.addOperation(download.exclusive("download \(url)"))
    queue.addOperation(migration.exclusive(ExclusivityKey(Database.self)))
    queue.addOperation(save.exclusive(ExclusivityKey(document.id)))

    queue.addOperation(alert.exclusive("alert"))
    queue.addOperation(transfer.exclusive("account 1", "account 2"))

    queue.addOperation(read.shared("database"))  // alongside other reads
    queue.addOperation(write.exclusive("database"))  // alone

    for url in urls { queue.addOperation(Download(url).limited("host \(url.host()!)", to: 4)) }
    queue.addOperation(render.limited("memory", to: 8, weight: 3))  // beside others that weigh at most 5

    queue.addOperation(call.throttled("api", to: 10, per: .seconds(1)))
    queue.addOperation(prompt.throttled("tokens", to: 90_000, per: .seconds(60), weight: 1_200))
    await queue.finished()
    #expect([scan, download, migration, alert, transfer, read, write, render, call].allSatisfy { $0.isSuccessful })
  }

  @Test func keys() async throws {
    let (login, sync, member) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let (first, second) = (AsyncOperation(), AsyncOperation())
    let (save, document) = (AsyncOperation(), (id: UUID(), text: ""))
    let (group, block, from, to, session) = (GroupOperation(), BlockOperation {}, 1, 2, 1)

    queue.addOperation(alert.exclusive(.alert))
    queue.addOperation(
      transfer.exclusive("account \(from)", "account \(to)")
    )
    try await queue.run(migration.exclusive(ExclusivityKey(Database.self)))
    queue.addOperation(save.exclusive(ExclusivityKey(document.id)))

    group.addOperation(member.exclusive(.alert))
    queue.addOperations([group, GroupOperation("Update") { login.exclusive("session") ==> sync }])
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
      let host = ExclusivityKey("host \(url.host() ?? "")")
      crawl.addOperation(Fetch(url).limited(host, to: 4))
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

  @Test func aLimitAndAPause() {
    let domain = ExclusivityDomain()
    domain.setLimit(2, for: "api")  // 0 holds all back, nil ends the limit
    // After a response with the status 429:
    domain.pause("api", for: .seconds(30))
    queue.addOperation(operation("call").shared("api", in: domain))
    #expect(domain.waiting(for: "api") == ["call"])
  }

  private final class Save: ResultOperation<Void>, @unchecked Sendable {
    static let saved = Journal<Int>()
    init(_ version: Int) { super.init { Save.saved.write(version) } }
  }

  @Test func theLatestVersionIsSaved() async {
    let (held, other, versions, clock) = (Held(), Held(), 1...10, ManualClock())
    queue.addOperation(held.exclusive("save"))
    await held.begun.opened()
    for version in versions { queue.addOperation(Save(version).exclusive("save", policy: .latest)) }
    held.gate.open()
    await queue.finished()
    #expect(Save.saved.entries == [10])

    queue.addOperation(other.exclusive("save"))
    await other.begun.opened()
    for version in 11...20 {
      let saving = GroupOperation("Save") {
        Save(version) ==> DelayOperation(.milliseconds(300))
      }
      queue.addOperation(saving.exclusive("save", policy: .latest))
      saving.clock = clock
      other.gate.open()
      if version == 11 { await clock.waitForSleepers() }
    }
    #expect(Save.saved.entries == [10, 11])
    for _ in 1...2 {
      await clock.waitForSleepers()
      clock.advance(by: .milliseconds(300))
    }
    await queue.finished()
    #expect(Save.saved.entries == [10, 11, 20])
  }

  final class Editor: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    @Confined private var pendingSave: ScheduledEvent?

    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

    let saves = Journal<Void>()
    private func save() { saves.write(()) }

    func textDidChange() {
      pendingSave?.cancel()
      pendingSave = schedule(after: .milliseconds(300)) { editor in
        editor.save()
      }
    }
  }

  @Test func anEditorSavesOnceAfterAllChanges() async throws {
    let clock = ManualClock()
    let editor = Editor(on: SerialScheduler(name: "editor", clock: clock))
    for _ in 1...10 { try await editor.run { $0.textDidChange() } }
    await clock.advance(by: .milliseconds(300), draining: editor.scheduler)
    #expect(editor.saves.count == 1)
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
