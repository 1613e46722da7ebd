import Foundation
import Operations

/// Counts the words of a file, which may be larger than memory.
///
/// ```
/// read ──▶ count ────────────▶ sum ──▶ …
///   └─▶ read ──▶ count ─────────┘
/// ```
///
/// A group inside the operation reads, counts and sums up chunks. Reading a chunk adds the operations for the next
/// chunk, so that reading and counting run in parallel. At most four chunks are in memory, because reading a chunk
/// depends on counting the chunk four places before it.
final class FileOperation: ResultOperation<Words>, @unchecked Sendable {
  private static let maxChunks = 4

  private let path: FilePath
  private let size: Int
  private let tally: Tally
  private let tracer: OperationTracer?
  private let pipeline = GroupOperation()

  // These are used by `execute`, and then by the reading of one chunk after the other, never at the same time.
  private var counts: [ResultOperation<Words>] = []
  private var total: ResultOperation<Words>?
  private var chunks = 0

  /// The words that are in the tally. Used by one sum after the other, never at the same time.
  private var reportedWords = 0

  /// - Parameters:
  ///   - size: The expected size of the file.
  ///   - tracer: Traces the operations inside.
  init(path: FilePath, size: Int, tally: Tally, tracer: OperationTracer?) {
    self.path = path
    self.size = size
    self.tally = tally
    self.tracer = tracer
    super.init()
    named(path.description)
    progressWeight = size
  }

  override func execute() {
    do {
      let file = try TextFile(path: path, size: size)
      pipeline.errorPolicy = .cancelOnFailure
      pipeline.addObserver(OperationObserver(didFinish: { [self] _ in end(of: file) }))
      // The pipeline is not a member of a group, so the tracer does not find it by itself.
      if let tracer { tracer.trace(pipeline.named("chunks of \(path)"), inside: self) }
      addChunk(of: file)
      pipeline.start()
    } catch { finish(with: error) }
  }

  override func didCancel() { pipeline.cancel() }

  // MARK: Chunks

  private func addChunk(of file: TextFile) {
    let read = ResultOperation { [self] in try readChunk(of: file) }
    if counts.count == FileOperation.maxChunks { counts.removeFirst() ==> read }
    let count = read.map { try Words(in: $0.take()) }
    counts.append(count)
    var members: [Operation] = [read, count]
    if let total {
      let sum = SumOperation()
      total.pass(to: sum) { sum, words in sum.left = words }
      count.pass(to: sum) { sum, words in sum.right = words }
      members.append(sum)
      self.total = sum
    } else {
      total = count
    }
    total?.onFinish { [self] in report($0) }
    chunks += 1
    if tracer != nil {
      for (member, work) in zip(members, ["read", "count", "sum"]) { member.named("\(work) \(chunks)") }
    }
    // This comes last, because the read may start at once and add the next chunk.
    pipeline.addOperations(members)
  }

  private func readChunk(of file: TextFile) throws -> TextChunk {
    let chunk = try file.read()
    if !file.isAtEnd {
      progress.totalUnitCount = Int64(size)
      progress.completedUnitCount = Int64(file.bytesRead)
      addChunk(of: file)
    }
    return chunk
  }

  private func report(_ result: Result<Words, any Error>) {
    guard case .success(let words) = result else { return }
    tally.change { $0.words += words.count - reportedWords }
    reportedWords = words.count
  }

  // MARK: End

  private func end(of file: TextFile) {
    file.close()
    let (isComplete, failures, result) = (pipeline.isSuccessful, pipeline.failures, total?.result)
    (counts, total) = ([], nil)
    tally.change { tally in
      if isComplete { tally.files += 1 }
      // The words of a file that cannot be read completely do not count.
      if !failures.isEmpty { tally.words -= reportedWords }
    }
    if !failures.isEmpty { return finish(with: AggregateError(failures).primary.error) }
    if isComplete, let result { finish(with: result) } else { finish() }
  }
}

/// Adds the words of a chunk to the words of the text before it.
private final class SumOperation: ResultOperation<Words>, @unchecked Sendable {
  // The operations that pass these values write them before this operation executes.
  var left = Words()
  var right = Words()

  override func execute() { finish(returning: left + right) }
}
