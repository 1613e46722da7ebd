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
  ///
  /// By way of the shell: on Linux Foundation's `Process` is never released (Swift 6.3.1).
  func run(_ arguments: [String], _ input: String) async throws -> (output: String, errors: String) {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try Data(input.utf8).write(to: files[0])
    let words = [path] + arguments + ["<", files[0].path, ">", files[1].path, "2>", files[2].path]
    let command = words.map { ["<", ">", "2>"].contains($0) ? $0 : "'\($0)'" }.joined(separator: " ")
    // It waits for the end, on a thread of its own.
    _ = await onThread { if let shell = unsafe popen(command, "r") { unsafe pclose(shell) } }
    // `Data(contentsOf:)` leaks a page if the file is empty, there too.
    let printed = try files.dropFirst().map { try FileHandle(forReadingFrom: $0).readToEnd() ?? Data() }
    return (String(decoding: printed[0], as: UTF8.self), String(decoding: printed[1], as: UTF8.self))
  }
}
