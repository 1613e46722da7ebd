import ExampleSupport
import Foundation
import Operations

/// Counts the words of all files at or below a path.
///
/// Its members list folders and read files, and add more members as they find them.
final class CountOperation: GroupOperation, @unchecked Sendable {
  /// The number of waiting files at which reading gets precedence over listing.
  private static let manyFiles = 10_000

  let tally = Tally()
  private let tracer: OperationTracer?

  /// - Parameters:
  ///   - path: A file, a folder, or a symbolic link to one.
  ///   - limit: How many files and folders may be open at once.
  ///   - tracer: Traces the group and the operations inside its members.
  init(path: String, limit: Int, tracer: OperationTracer?) throws {
    self.tracer = tracer
    super.init()
    var path = FilePath(path)
    if case .other = try path.kind() { path = try path.resolved() }
    if case .other = try path.kind() { throw Unreadable("is neither a file nor a folder") }
    maxConcurrentOperationCount = limit
    tracer?.trace(self)
    add([path])
  }

  var hasManyWaitingFiles: Bool { tally.numbers.waitingFiles > CountOperation.manyFiles }

  /// Adds a member for each file and each folder among the paths, and ignores everything else.
  func add(_ paths: [FilePath]) {
    let members = paths.compactMap { path -> AsyncOperation? in
      switch Result(catching: { try path.kind() }) {
      case .success(.file(let size)): FileOperation(path: path, size: size, tally: tally, tracer: tracer)
      case .success(.folder): ListOperation(path: path, in: self)
      case .success(.other): nil
      // Reading fails for the same reason, and reports it.
      case .failure: FileOperation(path: path, size: 0, tally: tally, tracer: tracer)
      }
    }
    tally.change { tally in tally.waitingFiles += members.count { $0 is FileOperation } }
    addOperations(members)
  }

  override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
    if member is FileOperation { tally.change { $0.waitingFiles -= 1 } }
    return errors
  }
}

/// Adds a member to the group for each file and each folder in a folder.
private final class ListOperation: AsyncOperation, @unchecked Sendable {
  /// The number of members to add at once. Another operation adds the rest of a large folder.
  private static let batch = 1000

  private let path: FilePath
  private let remaining: ArraySlice<FilePath>?
  /// Weak because the group holds its members.
  private weak var group: CountOperation?

  /// - Parameters:
  ///   - remaining: What is left to be added, or nil if the folder has not been listed.
  ///   - isUrgent: Whether to start before the files that wait to be read.
  init(path: FilePath, remaining: ArraySlice<FilePath>? = nil, in group: CountOperation, isUrgent: Bool = true) {
    self.path = path
    self.remaining = remaining
    self.group = group
    super.init()
    named(path.description)
    queuePriority = isUrgent ? .high : .low
  }

  override func execute() {
    guard let group else { return finish() }
    // Listing comes before reading, so that the progress bar knows the total. But waiting files occupy memory, so
    // reading comes first when there are many of them.
    if group.hasManyWaitingFiles, queuePriority == .high {
      group.addOperation(ListOperation(path: path, remaining: remaining, in: group, isUrgent: false))
      return finish()
    }
    do {
      let paths = try remaining ?? path.contents()[...]
      group.add(Array(paths.prefix(ListOperation.batch)))
      let rest = paths.dropFirst(ListOperation.batch)
      if !rest.isEmpty { group.addOperation(ListOperation(path: path, remaining: rest, in: group)) }
      finish()
    } catch { finish(with: error) }
  }
}

/// The progress of the count. It can be read at any time.
final class Tally: @unchecked Sendable {
  struct Numbers: CustomStringConvertible {
    /// The files that have been read completely.
    var files = 0
    /// The words so far, including those of the files that are being read.
    var words = 0
    /// The files that have been found and not yet read.
    var waitingFiles = 0

    var description: String {
      "\(words) \(words == 1 ? "word" : "words") in \(files) \(files == 1 ? "file" : "files")"
    }
  }

  private let storage = Protected(Numbers())

  var numbers: Numbers { storage.withLock { $0 } }

  func change(_ body: (inout Numbers) -> Void) { storage.withLock(body) }
}
