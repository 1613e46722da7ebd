#if os(macOS) || os(Linux)
import Foundation
import Operations
import OperationsTestSupport
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(5)))
struct PipelineTests {
  private let clock = ManualClock()
  private let tracer: OperationTracer
  private let photos: GroupOperation

  init() {
    tracer = OperationTracer(clock: clock)
    photos = makeImport(of: Camera.photos, by: Camera.services(on: clock), in: ExclusivityDomain())
    photos.clock = clock
    tracer.trace(photos)
    OperationQueue().addOperation(photos)
  }

  private func records(_ stage: String) -> [OperationTracer.Record] {
    tracer.records.filter { $0.name.hasPrefix(stage + " ") }
  }

  /// The largest number of operations that executed at the same time.
  private func peak(_ records: [OperationTracer.Record]) -> Int {
    let starts = records.compactMap(\.started)
    let spans = records.compactMap { record in record.started.map { $0..<(record.finished ?? .seconds(1_000_000)) } }
    return starts.map { start in spans.count { $0.contains(start) } }.max() ?? 0
  }

  @Test func everyStage_keepsItsLimits_andStartsBeforeTheOneBeforeItHasFinished() async throws {
    await clock.run(until: photos)
    #expect(peak(records("load") + records("shrink")) == 4)
    // While a retry backs off, it uses no slot.
    #expect(peak(records("upload").filter { $0.name != "upload 2" }) <= 3)
    for host in ["north", "south"] {
      let names = Camera.photos.filter { $0.host == host && $0.name != "2" }.map { "upload \($0.name)" }
      #expect(peak(records("upload").filter { names.contains($0.name) }) == 2)
    }
    let firstUpload = try #require(records("upload").compactMap(\.started).min())
    let lastLoad = try #require(records("load").compactMap(\.started).max())
    #expect(firstUpload < lastLoad)
  }

  @Test func onePhotoThatCannotBeLoaded_isTheOnlyFailure_andIsNotUploaded() async throws {
    await clock.run(until: photos)
    let error = try #require(throws: AggregateError.self) { throw AggregateError(photos.failures) }
    #expect(error.rootFailures.map(\.path) == [["import", "prepare", "load 5"]])
    let uploaded = records("upload").filter { $0.state == .finished }
    #expect(uploaded.count == 9 && !uploaded.contains { $0.name == "upload 5" })
  }

  @Test func cancelled_thePipelineEndsAtOnce() async throws {
    let cancelling = Task {
      try await clock.sleep(for: .milliseconds(100))
      photos.cancel()
    }
    await clock.run(until: photos)
    try await cancelling.value
    #expect(photos.isCancelled && clock.now.offset == .milliseconds(100))
  }
}
#endif
