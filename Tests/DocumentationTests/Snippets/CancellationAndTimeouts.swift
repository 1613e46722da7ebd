import Foundation
import Operations
import OperationsTestSupport
import Testing

func cancelWhenAskedToStop(_ operation: AsyncOperation) -> [any DispatchSourceSignal] {
  [SIGINT, SIGTERM].map { number in
    signal(number, SIG_IGN)  // otherwise the signal ends the process at once
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
    source.setEventHandler {
      operation.cancel()
      operation.timeout = .milliseconds(700)  // finishes the operation even if its work does not stop
    }
    source.activate()
    return source
  }
}

/// The page CancellationAndTimeouts.
@Suite(.timeLimit(.minutes(5)))
struct CancellationAndTimeouts {
  private let queue = OperationQueue()
  private let printed = Journal<String>()

  private func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) }

  fileprivate final class Fetch: AsyncOperation, @unchecked Sendable {
    let begun = Gate()
    private let error: any Error

    init(_ error: any Error) {
      self.error = error
      super.init()
    }

    override func execute() { begun.open() }
    override func didCancel() { finish(with: error) }
  }

  private struct DiskFull: Error, CustomStringConvertible {
    let description = "the disk is full"
  }

  private func stop(_ error: any Error) async throws {
    let page = Fetch(error).named("page")
    let crawl = GroupOperation("Crawl") { page }
    page.begun.whenOpen { crawl.cancel() }
    do {
      try await queue.run(crawl)
    } catch is CancellationError {
      print("stopped")
    } catch let error as AggregateError {
      print(error.isCancelled ? "stopped, after" : "finished, with", error)
    }
  }

  @Test func aCrawlThatIsStopped() async throws {
    try await stop(CancellationError())
    try await stop(DiskFull())
    #expect(printed.entries == ["stopped", "stopped, after Crawl › page: the disk is full"])
  }

  @Test func aTimeout() async throws {
    let batch = GroupOperation("Batch") { AsyncBlockOperation { _ in }.named("hanging") }
    batch.timeout = .milliseconds(10)
    do {
      try await queue.run(batch)
    } catch OperationError.Code.timedOut {
      print(batch.errors[0])
    }
    let text = "“Batch” was cancelled because it took longer than 0.01 seconds. Still executing: “hanging”."
    #expect(printed.entries == [text])
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
      do {
        try await OperationQueue().run(crawl)
      } catch is CancellationError {
        print("stopped")
      }
      withExtendedLifetime(sources) {}

      exit(crawl.isCancelled ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }
  #endif
}

private func makeCrawl() -> AsyncOperation {
  GroupOperation("Crawl") { CancellationAndTimeouts.Fetch(CancellationError()) }
}
