import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What of UIKit the page uses.
@MainActor
final class UIAlertController {
  enum Style { case alert }

  init(title: String?, message: String?, preferredStyle: Style) {}

  func addAction(_ action: UIAlertAction) {}
  func dismiss(animated: Bool, completion: () -> Void) { completion() }
}

@MainActor
final class UIAlertAction {
  enum Style { case `default` }

  init(title: String?, style: Style, handler: ((UIAlertAction) -> Void)?) {}
}

@MainActor
final class UIViewController {
  let presented = Gate()

  nonisolated init() {}

  func present(_ alert: UIAlertController, animated: Bool) { presented.open() }
}

/// The page ChoosingAnOperation.
@Suite(.timeLimit(.minutes(5)))
struct ChoosingAnOperation {
  final class Alert: MainOperation, @unchecked Sendable {
    private let text: String
    private let window: UIViewController
    @MainActor private var alert: UIAlertController?

    init(_ text: String, in window: UIViewController) {
      (self.text, self.window) = (text, window)
    }

    override func executeOnMain() {
      let alert = UIAlertController(
        title: text,
        message: nil,
        preferredStyle: .alert
      )
      alert.addAction(
        UIAlertAction(title: "OK", style: .default) { _ in self.end() }
      )
      window.present(alert, animated: true)
      self.alert = alert
    }

    override func didCancel() {
      Task { @MainActor in
        guard let alert else { return finish() }
        alert.dismiss(animated: true) { self.end() }
      }
    }

    @MainActor private func end() {
      alert = nil  // break the retain cycle
      finish()
    }
  }

  private let queue = OperationQueue()

  @Test func anAlertIsShown_andDismissedByItsName() async {
    let window = UIViewController()
    let offline = Alert("You are offline.", in: window).named("offline")
    queue.addOperation(offline.exclusive("alert"))
    await window.presented.opened()
    queue.cancelOperations(named: "offline")
    await offline.finished()
    #expect(offline.isCancelled)
  }

  @Test func anAlertThatIsReplaced_isDismissed() async {
    let (first, last, domain) = (UIViewController(), UIViewController(), ExclusivityDomain())
    let replaced = Alert("first", in: first)
    queue.addOperation(replaced.exclusive("alert", in: domain))
    await first.presented.opened()
    let newest = Alert("last", in: last)
    queue.addOperation(newest.exclusive("alert", policy: .replace, in: domain))
    await replaced.finished()
    await last.presented.opened()
    newest.cancel()
    await newest.finished()
  }

  @Test func waits() async throws {
    let (operation, group) = (ResultOperation { 1 }, GroupOperation().started())
    #expect(operation.result == nil)
    group.addOperation(operation)
    #expect(try await operation.value == 1 && operation.result?.get() == 1)
    await group.waitForRoom(below: 1)
    #expect(!group.isFinished)
    group.finish()
    await group.drained()
  }
}
