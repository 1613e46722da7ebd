import Foundation
import Operations

/// Counts the words of a file, which may be larger than the memory.
///
/// ```
/// read ──▶ count ────────────▶ sum ──▶ …
///   └─▶ read ──▶ count ─────────┘
/// ```
///
/// Inside it is a group, in which the reading of a chunk adds the operations for the next one: the next is read while
/// this one is counted, on as many processors as there are. No more than a few chunks are under way, for reading waits
/// until the chunk that many before has been counted.
final class FileOperation: ResultOperation<Words>, @unchecked Sendable {
  private static let chunksUnderWay = 4

  private let path: String
  private let size: Int
  private let tally: Tally
  private let tracer: OperationTracer?
  private let pipeline = GroupOperation()

  // These belong to whoever adds a chunk: first this operation, then the reading of one chunk after the other.
  private var counts: [ResultOperation<Words>] = []
  private var total: ResultOperation<Words>?
  private var chunks = 0

  /// Belongs to whoever has added up: one sum after the other.
  private var wordsSoFar = 0

  /// - Parameters:
  ///   - size: How big the file is thought to be.
  ///   - tracer: Follows what is inside, too.
  init(path: String, size: Int, tally: Tally, tracer: OperationTracer?) {
    self.path = path
    self.size = size
    self.tally = tally
    self.tracer = tracer
    super.init()
    named(path)
    progressWeight = size
  }

  override func execute() {
    do {
      let file = try TextFile(path: path, size: size)
      pipeline.errorPolicy = .cancelOnFailure
      pipeline.addObserver(OperationObserver(didFinish: { [self] _ in end(of: file) }))
      // Whoever follows this operation does not know of a group that it starts by hand.
      if let tracer { tracer.trace(pipeline.named("chunks of \(path)"), inside: self) }
      addChunk(of: file)
      pipeline.start()
    } catch { finish(with: error) }
  }

  override func didCancel() { pipeline.cancel() }

  // MARK: Chunks

  private func addChunk(of file: TextFile) {
    let read = ResultOperation { [self] in try readChunk(of: file) }
    if counts.count == FileOperation.chunksUnderWay { counts.removeFirst() ==> read }
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
    if tracer != nil { nameForTrace(members) }
    // Last, for the next chunk may be added at once.
    pipeline.addOperations(members)
  }

  /// What nobody sees does without names.
  private func nameForTrace(_ members: [Operation]) {
    for (member, work) in zip(members, ["read", "count", "sum"]) { member.named("\(work) \(chunks)") }
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
    tally.change { $0.words += words.count - wordsSoFar }
    wordsSoFar = words.count
  }

  // MARK: The end

  private func end(of file: TextFile) {
    file.close()
    let (isComplete, failures, result) = (pipeline.isSuccessful, pipeline.failures, total?.result)
    (counts, total) = ([], nil)
    tally.change { tally in
      if isComplete { tally.files += 1 }
      // What is in a file that cannot be read to its end does not count.
      if !failures.isEmpty { tally.words -= wordsSoFar }
    }
    if !failures.isEmpty { return finish(with: AggregateError(failures).primary.error) }
    if isComplete, let result { finish(with: result) } else { finish() }
  }
}
