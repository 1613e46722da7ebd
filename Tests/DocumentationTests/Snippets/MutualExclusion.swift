import Foundation
import Operations
import OperationsTestSupport
import Testing

extension ExclusivityKey {
  static let camera: Self = "camera"  // spelled once
}

/// The page MutualExclusion and the comments in Sources/Operations/Exclusivity.
///
/// The tests use the keys of the process one after another, because pages give `"alert"` different meanings.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MutualExclusionSnippets {
  private enum Database {}

  private final class RefreshToken: ResultOperation<Int>, @unchecked Sendable {
    init(_ session: Int) { super.init { session + 1 } }
  }

  private final class Download: AsyncOperation, @unchecked Sendable { init(_ url: URL) {} }

  private let queue = OperationQueue()

  @Test func keysAndLimits() async throws {
    let (scan, download, migration, save) = (AsyncOperation(), AsyncOperation(), AsyncOperation(), AsyncOperation())
    let (alert, transfer, read, write) = (AsyncOperation(), AsyncOperation(), AsyncOperation(), AsyncOperation())
    let (render, call, prompt) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let (url, document, session) = ("https://a.example", (id: UUID(), text: ""), 1)
    let urls = [URL(string: "https://a.example/1")!, URL(string: "https://b.example/2")!]
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
    let all = [scan, download, migration, save, alert, transfer, read, write, render, call]
    #expect(all.allSatisfy { $0.isSuccessful })

    let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }
    #expect(token == 2)
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

  @Test func theNewestVersionIsSavedOncePerInterval() async {
    let (held, clock) = (Held(), ManualClock())
    queue.addOperation(held.exclusive("save"))
    await held.begun.opened()
    for version in 1...10 {
      let saving = GroupOperation("Save") { Save(version) ==> DelayOperation(.milliseconds(300)) }
      queue.addOperation(saving.exclusive("save", policy: .latest))
      saving.clock = clock
      held.gate.open()
      if version == 1 { await clock.waitForSleepers() }
    }
    #expect(Save.saved.entries == [1])
    for _ in 1...2 {
      await clock.waitForSleepers()
      clock.advance(by: .milliseconds(300))
    }
    await queue.finished()
    #expect(Save.saved.entries == [1, 10])
  }

  final class Editor: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    @Confined private var pendingSave: ScheduledEvent?

    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

    let saves = Journal<Void>()
    private func save() { saves.write(()) }

    func textDidChange() {
      pendingSave?.cancel()
      pendingSave = schedule(after: .milliseconds(300)) { editor in editor.save() }
    }
  }

  @Test func anEditorSavesOnceAfterAllChanges() async throws {
    let clock = ManualClock()
    let editor = Editor(on: SerialScheduler(name: "editor", clock: clock))
    for _ in 1...10 { try await editor.run { $0.textDidChange() } }
    await clock.advance(by: .milliseconds(300), draining: editor.scheduler)
    #expect(editor.saves.count == 1)
  }
}
