import Foundation
import Operations

/// Counts the words of every file at or below a path.
///
/// Its members list folders and read files, and add each other as they find them.
final class CountOperation: GroupOperation, @unchecked Sendable {
  /// So many files may wait before listing more folders has to.
  private static let manyFiles = 10_000

  let tally = Tally()
  private let tracer: OperationTracer?

  /// - Parameters:
  ///   - path: May also be a symbolic link: who names one means what it leads to.
  ///   - limit: How many files and folders may be open at once.
  ///   - tracer: Follows the operations of each file, too.
  init(path: String, limit: Int, tracer: OperationTracer?) throws {
    self.tracer = tracer
    super.init()
    var path = path
    if case .other = try FileKind(ofPath: path) { path = URL(filePath: path).resolvingSymlinksInPath().path }
    if case .other = try FileKind(ofPath: path) { throw Unreadable("is neither a file nor a folder") }
    maxConcurrentOperationCount = limit
    tracer?.trace(self)
    add([path])
  }

  var hasManyWaitingFiles: Bool { tally.numbers.waitingFiles > CountOperation.manyFiles }

  /// Adds a member for each file and each folder among `paths`. Nothing else is followed.
  func add(_ paths: [String]) {
    let members = paths.compactMap { path -> AsyncOperation? in
      switch Result(catching: { try FileKind(ofPath: path) }) {
      case .success(.file(let size)): FileOperation(path: path, size: size, tally: tally, tracer: tracer)
      case .success(.folder): ListOperation(path: path, in: self)
      case .success(.other): nil
      // It fails again when it is to be read, and then says why.
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
