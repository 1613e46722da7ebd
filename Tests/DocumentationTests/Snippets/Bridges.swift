import Foundation
import Observation
import Operations
import OperationsTestSupport
import Testing

// What stands for the other packages, with the declarations that the recipes use.

struct Logger: Sendable {
  let lines = Journal<String>()

  func debug(_ message: String, metadata: [String: String]) { lines.write("\(message) \(metadata["operation"] ?? "")") }
  func error(_ message: String, metadata: [String: String]) { debug(message, metadata: metadata) }
}

struct Span: Sendable {
  @TaskLocal static var current: Span?
  let path: String
}

private func withSpan<T: Sendable>(_ name: String, _ body: @Sendable (Span) async throws -> T) async throws -> T {
  let span = Span(path: Span.current.map { "\($0.path)/\(name)" } ?? name)
  return try await Span.$current.withValue(span) { try await body(span) }
}

protocol Service: Sendable { func run() async throws }

private enum Lifecycle { @TaskLocal static var shutdown = Gate() }

private func gracefulShutdown() async throws {
  let shutdown = Lifecycle.shutdown
  await withTaskCancellationHandler(operation: { await shutdown.opened() }, onCancel: { shutdown.open() })
  try Task.checkCancellation()
}

extension OperationObserver {
  static func logging(to logger: Logger) -> Self {
    OperationObserver(
      didStart: { operation in
        let name = operation.name ?? ""
        logger.debug("started", metadata: ["operation": "\(name)"])
      },
      didFinish: { operation in
        let name = operation.name ?? ""
        for error in operation.errors {
          logger.error("failed", metadata: ["operation": "\(name)", "error": "\(error)"])
        }
        logger.debug("finished", metadata: ["operation": "\(name)"])
      }
    )
  }
}

struct QueueService: Service {
  let queue: OperationQueue

  func run() async throws {
    await withTaskCancellationHandler {
      try? await gracefulShutdown()
      // A task of its own is not cancelled with this one.
      await Task { await queue.finished() }.value
    } onCancel: {
      // Cancels what executes only after what waits.
      queue.cancelWaitingOperations()
      for operation in queue.operations { operation.cancel() }
    }
  }
}

@MainActor @Observable
final class ProgressModel {
  private(set) var fraction = 0.0
  private(set) var isFinished = false

  func follow(_ group: GroupOperation) async {
    for await fraction in group.progressUpdates { self.fraction = fraction }
    isFinished = group.isFinished
  }
}

/// The page Bridges.
@Suite(.timeLimit(.minutes(5)))
struct BridgesSnippets {
  private let queue = OperationQueue()

  @Test func logging() async {
    let logger = Logger()
    let upload = ResultOperation<Void> { throw CocoaError(.fileNoSuchFile) }.named("upload")
    upload.addObserver(.logging(to: logger))
    queue.addOperation(upload)
    await upload.finished()
    #expect(logger.lines.entries == ["started upload", "failed upload", "finished upload"])
  }

  private func send(_ page: String) async throws -> String { Span.current.map { "\($0.path): \(page)" } ?? page }

  @Test func tracing() async throws {
    let page = "home"
    let size = try await withSpan("sync") { _ in
      try await queue.run { try await withSpan("upload") { _ in try await send(page) } }
    }
    #expect(size == "sync/upload: home")
  }

  @Test(arguments: [false, true])
  func aQueueFinishesOrCancelsItsOperationsBeforeItsServiceEnds(isCancelled: Bool) async throws {
    let (shutdown, clock) = (Gate(), ManualClock())
    let operation = queue.addTask { try await clock.sleep(for: .seconds(1)) }
    await clock.waitForSleepers(1)
    let service = Lifecycle.$shutdown.withValue(shutdown) { Task { try await QueueService(queue: queue).run() } }
    if isCancelled {
      service.cancel()
    } else {
      shutdown.open()
      clock.advance(by: .seconds(1))
    }
    try await service.value
    #expect(operation.isFinished && operation.isSuccessful == !isCancelled)
  }

  @Test @MainActor func aModelFollowsAGroup() async {
    let model = ProgressModel()
    let group = GroupOperation([AsyncOperation(), AsyncOperation()])
    queue.addOperation(group)
    await model.follow(group)
    #expect(model.isFinished && model.fraction == 1)
  }
}
