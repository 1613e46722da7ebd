import Foundation
import Operations
import OperationsTestSupport

/// Where a piece of code is called.
struct Place: Sendable, Equatable {
  let thread: ObjectIdentifier
  let isInTask: Bool
  let isOnMain: Bool
  let queue: ObjectIdentifier?

  static var here: Self {
    Self(
      thread: ObjectIdentifier(Thread.current),
      isInTask: unsafe withUnsafeCurrentTask { unsafe $0 != nil },
      isOnMain: SerialScheduler.main.isCurrent,
      queue: OperationQueue.current.map { ObjectIdentifier($0) }
    )
  }

  func isOn(_ queue: OperationQueue) -> Bool { !isInTask && self.queue == ObjectIdentifier(queue) }
}

/// Calls `body` on a thread of its own, which no task runs on, and returns where that was.
@discardableResult
func onThread(_ body: @escaping @Sendable () -> Void) async -> Place {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      let place = Place.here
      body()
      continuation.resume(returning: place)
    }
  }
}

/// Tells when it has begun, and finishes when somebody says so. Writes down what is called, and where.
final class ObservedOperation: AsyncOperation, @unchecked Sendable {
  struct Call: Sendable, Equatable {
    let name: String
    let place: Place
  }

  let begun = Gate()
  let calls = Journal<Call>()

  override init() {
    super.init()
    addObserver(
      OperationObserver(
        didStart: { [calls] _ in calls.write(Call(name: "observer: didStart", place: .here)) },
        didCancel: { [calls] _ in calls.write(Call(name: "observer: didCancel", place: .here)) },
        didFinish: { [calls] _ in calls.write(Call(name: "observer: didFinish", place: .here)) }
      )
    )
  }

  override func execute() {
    note("execute")
    begun.open()
  }

  override func didCancel() { note("didCancel") }

  override func didFinish() { note("didFinish") }

  private func note(_ name: String) { calls.write(Call(name: name, place: .here)) }

  var names: [String] { calls.entries.map(\.name) }

  func places(of name: String) -> [Place] { calls.entries.filter { $0.name == name }.map(\.place) }
}
