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

  @Test func withoutAnOverrideItFinishes() async throws {
    try await OperationQueue().run(MainOperation())
  }

  @Test(arguments: [false, true])
  @MainActor func endedBeforeTheMainActorHasTimeItIsNotShown(byCancelling: Bool) async {
    let dialog = Dialog()
    // The main actor is busy here until the next suspension.
    dialog.start()
    if byCancelling { dialog.cancel() } else { dialog.finish() }
    #expect(dialog.isExecuting == byCancelling)
    await dialog.finished()
    await Task { @MainActor in }.value
    #expect(!dialog.isShown && dialog.isCancelled == byCancelling)
  }
}
