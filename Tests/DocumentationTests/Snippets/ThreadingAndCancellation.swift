import Foundation
import Operations
import OperationsTestSupport
import Testing

func cancelWhenAskedToStop(_ operation: AsyncOperation) -> [any DispatchSourceSignal] {
  [SIGINT, SIGTERM].map { number in
    // Otherwise the signal ends the process at once.
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
    source.setEventHandler {
      operation.cancel()
      // Finishes the operation even if its work does not stop.
      operation.timeout = .milliseconds(700)
    }
    source.activate()
    return source
  }
}

/// The page ThreadingAndCancellation.
@Suite(.timeLimit(.minutes(5)))
struct ThreadingAndCancellation: Printing {
  private let queue = OperationQueue()
  let printed = Journal<String>()

  @Test func aTimeoutOfAGroup() async throws {
    let (clock, hanging) = (ManualClock(), AsyncBlockOperation { _ in }.named("hanging"))
    let batch = GroupOperation("Batch") { hanging }
    batch.clock = clock
    batch.timeout = .milliseconds(10)
    hanging.addObserver(OperationObserver(didStart: { _ in clock.advance(by: .milliseconds(10)) }))
    do { try await queue.run(batch) } catch OperationError.Code.timedOut { print(batch.errors[0]) }
    let text = "“Batch” was cancelled because it took longer than 0.01 seconds. Still executing: “hanging”."
    #expect(printed.entries == [text])
  }

  @Test func aWaitLimit() async {
    let (clock, domain, sync) = (ManualClock(), ExclusivityDomain(), Held().named("sync"))
    queue.addOperation(sync.exclusive("api", in: domain))
    await sync.begun.opened()
    let upload = operation("upload").exclusive("api", in: domain)
    upload.clock = clock
    upload.waitLimit = .seconds(5)
    queue.addOperation(upload)
    clock.advance(by: .seconds(5))
    for error in upload.errors { print(error) }
    let text = """
      “upload” was cancelled because it could not start within 5 seconds: it waited for the key “api”, held by “sync”.
      """
    #expect(printed.entries == [text])
    sync.gate.open()
    await queue.finished()
  }

  @Test func aGroupThatIsDrained() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = Held()
    let upload = GroupOperation("Upload") { file }
    queue.addOperation(upload)
    await file.begun.opened()
    upload.addObserver(OperationObserver(didFinish: { _ in file.gate.open() }))

    upload.finishesWhenCancelled = true
    // `upload` has finished, but its members may still read the files.
    upload.cancel()
    await upload.drained()
    try FileManager.default.removeItem(at: folder)

    #expect(file.isFinished)
  }

  @Test func aGracefulShutdown() async {
    let requests = GroupOperation(maxConcurrentOperationCount: 1).started()
    let (executing, waiting) = (Held(), AsyncOperation())
    requests.addOperations([executing, waiting])
    await executing.begun.opened()
    waiting.addObserver(OperationObserver(didFinish: { _ in executing.gate.open() }))

    requests.staysOpen = false
    requests.cancelWaitingOperations()
    await requests.drained()

    #expect(executing.isSuccessful && waiting.isCancelled && waiting.errors.isEmpty)
  }
}

/// Apart from the other snippets, whose `print` writes into a journal.
@Suite(.timeLimit(.minutes(5)))
struct CancellationSignals {
  #if os(macOS) || os(Linux)
  /// In a process of its own: a signal is for all of it.
  @Test func aSignalCancels() async throws {
    await #expect(processExitsWith: .success) {
      // A signal that comes before the source is active is ignored, so it is sent repeatedly.
      signal(SIGTERM, SIG_IGN)
      Task {
        while true {
          kill(getpid(), SIGTERM)
          try await Task.sleep(for: .milliseconds(20))
        }
      }

      let crawl = makeCrawl()
      let sources = cancelWhenAskedToStop(crawl)
      do { try await OperationQueue().run(crawl) } catch is CancellationError { print("stopped") }
      withExtendedLifetime(sources) {}

      exit(crawl.isCancelled ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }
  #endif
}

private func makeCrawl() -> AsyncOperation {
  let crawl = GroupOperation("Crawl") { TestingOperationsSnippets.Download() }
  crawl.clock = ManualClock()
  return crawl
}
