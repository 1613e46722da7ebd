import Foundation

/// A program of the system's, if it is installed.
struct Tool: Sendable {
  /// Graphviz's.
  static let dot = Tool("dot")

  private let path: String

  private init?(_ name: String) {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let paths = folders.map { "\($0)/\(name)" }
    guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { return nil }
    self.path = path
  }

  /// What the program prints when it is given `input`. It goes through files: a pipe may be full before it is read.
  func run(_ arguments: [String], _ input: String) async throws -> (output: String, errors: String) {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try Data(input.utf8).write(to: files[0])
    for file in files.dropFirst() { try Data().write(to: file) }
    let process = Process()
    process.executableURL = URL(filePath: path)
    process.arguments = arguments
    process.standardInput = try FileHandle(forReadingFrom: files[0])
    process.standardOutput = try FileHandle(forWritingTo: files[1])
    process.standardError = try FileHandle(forWritingTo: files[2])
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      process.terminationHandler = { _ in continuation.resume() }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    return (
      String(decoding: try Data(contentsOf: files[1]), as: UTF8.self),
      String(decoding: try Data(contentsOf: files[2]), as: UTF8.self)
    )
  }
}
