import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct EffectsSnippets {
  @MainActor private final class View {
    let shown = Journal<Int>()

    nonisolated init() {}

    func show(_ errors: [any Error]) { shown.write(errors.count) }
  }

  @Test func theEndIsShownOnTheMainThread() async throws {
    let (upload, view) = (AsyncOperation(), View())
    upload.addObserver(
      OperationObserver(didFinish: { operation in
        let errors = operation.errors
        SerialScheduler.scheduleOnMain { view.show(errors) }
      })
    )
    try await OperationQueue().run(upload)
    await view.shown.reaches(1)
    #expect(view.shown.entries == [0])
  }
}
