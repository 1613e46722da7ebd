import Foundation
import Operations
import Testing

// A module in which everything belongs to the main actor unless it says otherwise. An operation runs on the thread its
// queue gives it, so its class says so.

nonisolated final class Greeting: AsyncOperation, @unchecked Sendable {
  private let greeting: String

  init(_ greeting: String) { self.greeting = greeting }

  override func execute() {
    named(greeting)
    finish()
  }
}

nonisolated final class Greetings: GroupOperation, @unchecked Sendable {
  init() { super.init { Greeting("Hello") ==> Greeting("World") } }
}

nonisolated final class Length: ResultOperation<Int>, @unchecked Sendable {
  override func execute() { finish(returning: 5) }
}

nonisolated final class Doubling: TransformOperation<Int, Int>, @unchecked Sendable {
  override func transform(_ input: Int) async throws -> Int { input * 2 }
}

nonisolated final class Fetching: TaskOperation<Int>, @unchecked Sendable {
  override func run() async throws -> Int { 21 }
}

nonisolated final class Dialog: MainOperation, @unchecked Sendable {
  @MainActor var isShown = false

  // In a nonisolated class, an override is also nonisolated by default.
  @MainActor override func executeOnMain() {
    isShown = true
    finish()
  }
}

actor Library: ScheduledActor {
  let scheduler = SerialScheduler(name: "library")
  private var books = 0

  func add() -> Int {
    scheduler.preconditionIsCurrent()
    books += 1
    return books
  }
}

/// Implicitly nonisolated, because a Schedulable is Sendable. The keyword would rule out property wrappers.
final class Printer: Schedulable, @unchecked Sendable {
  let scheduler = SerialScheduler(name: "printer")
  @Confined private var lines: [String] = []

  func add(_ line: String) -> Int {
    lines.append(line)
    return lines.count
  }
}

nonisolated final class Options { var isVerbose = false }

@MainActor final class View: Schedulable {
  let scheduler = SerialScheduler.main
  var shown = 0
}

struct MainActorModuleTests {
  @Test func actorsAndObjectsLiveOnTheirSchedulers() async throws {
    let library = Library()
    #expect(await library.add() == 1)
    let printer = Printer()
    #expect(try await printer.run { $0.add("line") } == 1)
    let options = SchedulableObject(Options(), on: printer.scheduler)
    options.schedule { $0.isVerbose = true }
    #expect(try await options.run { $0.isVerbose })
  }

  @Test func resultsAreDeliveredOnTheMainActor() async {
    let view = View()
    #expect(view.scheduler === SerialScheduler.main)
    let printer = Printer()
    await withCheckedContinuation { continuation in
      printer.schedule(
        { $0.add("line") },
        deliverOn: .main,
        { result in
          view.shown += (try? result.get()) ?? 0
          SerialScheduler.scheduleOnMain {
            view.shown += 10
            continuation.resume()
          }
        }
      )
    }
    #expect(view.shown == 11)
  }

  @Test func valuesPassOffTheMainActor() async throws {
    let doubled = Fetching().pass(to: Doubling())
    let text = doubled.map { Thread.isMainThread ? "main" : "\($0)" }
    #expect(try await OperationQueue().run(text) == "42")
    let retry = RetryOperation(attempts: 2, retryIf: { _, attempt in attempt < 2 }, { _ in Fetching() })
    #expect(try await OperationQueue().run(retry) == 21)
  }

  @Test func theMainActorIsAHopAway() async throws {
    let (dialog, view) = (Dialog(), View())
    try await OperationQueue().run(dialog)
    #expect(dialog.isShown)
    let update = TaskOperation { @MainActor in view.shown = 1 }
    update.addCondition(OperationCondition(name: "on main") { _ in await MainActor.run { #expect(view.shown == 0) } })
    try await OperationQueue().run(update)
    #expect(view.shown == 1)
  }

  @Test func subclassesAndClosuresRunOffTheMainActor() async throws {
    let queue = OperationQueue()
    let greeting = Greeting("Hello")
    try await queue.run(greeting)
    #expect(greeting.name == "Hello")
    try await queue.run(Greetings())
    #expect(try await queue.run(Length()) == 5)
    let block = AsyncBlockOperation { operation in
      #expect(!Thread.isMainThread)
      operation.finish()
    }
    let last = ResultOperation { Thread.isMainThread }
    block ==> last
    #expect(try await queue.run(last) == false)
  }

  @Test func aTaskOfTheMainActor_holdsKeysAndSlotsWithItsOwnState() async throws {
    let (view, queue) = (View(), OperationQueue())
    try await withKeys(.exclusive("view"), in: ExclusivityDomain()) { view.shown += 1 }
    try await queue.withSlot("view") { view.shown += 1 }
    try await queue.run(
      MainOperation { operation in
        view.shown += 1
        operation.finish()
      }
    )
    #expect(view.shown == 3)
  }
}
