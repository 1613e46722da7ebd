#if os(macOS) || os(Linux)
import Foundation
import Testing

/// The package of the README, built as printed. It takes minutes, because it builds the library again.
@Suite(.timeLimit(.minutes(15)), .enabled(if: ProcessInfo.processInfo.environment["THOROUGH"] != nil))
struct ReadMePackageTests {
  @Test func thePackageOfTheReadMe_runsAndPassesItsTest() async throws {
    let page = try Repository.file("README.md").lines.joined(separator: "\n")
    let expression = #/ave (?:it|this) as\s+`(\S+)`[^`]*```\w*\n(.*?)```/#.dotMatchesNewlines()
    let files = page.matches(of: expression).map { (path: String($0.1), text: String($0.2)) }
    #expect(files.map(\.path) == ["Package.swift", "Sources/App/main.swift", "Tests/AppTests/BreakfastTests.swift"])
    try await withFiles(files.map { ("App/\($0.path)", $0.text) }) { folder in
      let clone = folder.appending(path: "swift-operations")
      try FileManager.default.createSymbolicLink(at: clone, withDestinationURL: Repository.root)
      let run = try await output(of: "cd '\(folder.path)/App' && swift run App")
      #expect(run.contains("breakfast › toast: Burnt()\n"), "\(run)")
      let test = try await output(of: "cd '\(folder.path)/App' && swift test")
      #expect(test.contains("Test run with 1 test in 0 suites passed"), "\(test)")
    }
  }
}

/// Calls `body` with a new folder that has these files.
func withFiles<T>(_ files: [(path: String, text: String)], _ body: (URL) async throws -> T) async throws -> T {
  let folder = FileManager.default.temporaryDirectory.appending(path: "files-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: folder) }
  for (path, text) in files {
    let file = folder.appending(path: path)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: file, atomically: true, encoding: .utf8)
  }
  return try await body(folder)
}

/// Runs a command in `sh`, and returns what it prints, errors included.
func output(of command: String) async throws -> String {
  let file = FileManager.default.temporaryDirectory.appending(path: "output-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: file) }
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      // Foundation's `Process` is never released on Linux.
      if let pipe = unsafe popen("{ \(command); } > '\(file.path)' 2>&1", "r") { unsafe pclose(pipe) }
      continuation.resume()
    }
  }
  return String(decoding: try FileHandle(forReadingFrom: file).readToEnd() ?? Data(), as: UTF8.self)
}
#endif
