import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct MainOperationTests {
  private final class Dialog: MainOperation, @unchecked Sendable {
    let shown = Gate()
    @MainActor private(set) var isShown = false

    override func executeOnMain() {
      // `Thread.isMainThread` is false here on Linux, where the main queue may be served by another one.
      dispatchPrecondition(condition: .onQueue(.main))
      isShown = true
      shown.open()
    }
  }

  @Test func itExecutesOnTheMainActorAndStaysUntilItIsFinished() async throws {
    let dialog = Dialog()
    OperationQueue().addOperation(dialog)
    await dialog.shown.opened()
    #expect(dialog.isExecuting)
    dialog.finish()
    try await dialog.completed()
    #expect(await dialog.isShown)
  }

  @Test func inAGroupToo() async throws {
    let dialog = Dialog()
    let run = Task { try await OperationQueue().run(GroupOperation { AsyncOperation() ==> dialog }) }
    await dialog.shown.opened()
    dialog.finish()
    try await run.value
  }

  @Test func withoutAnOverrideItFinishes() async throws {
    try await OperationQueue().run(MainOperation())
  }

  @Test @MainActor func cancelledBeforeTheMainActorHasTimeItIsNotShown() async {
    let dialog = Dialog()
    // The main actor is busy here until the next suspension.
    dialog.start()
    dialog.cancel()
    #expect(dialog.isExecuting)
    await dialog.finished()
    #expect(!dialog.isShown && dialog.isCancelled)
  }

  @Test @MainActor func finishedBeforeTheMainActorHasTimeItIsNotShown() async {
    let dialog = Dialog()
    dialog.start()
    dialog.finish()
    await dialog.finished()
    await Task { @MainActor in }.value
    #expect(!dialog.isShown)
  }
}
