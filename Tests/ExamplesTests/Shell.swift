#if os(macOS) || os(Linux)
import Foundation
import Testing

/// Runs command lines as a user does: in `sh`, with the built examples in the search path.
///
/// Output goes to files, because a full pipe blocks its writer. The shell starts with `popen`, because Foundation's
/// `Process` is never released on Linux (Swift 6.3.1) and so fails the leak check.
struct Shell {
  /// What a command line printed, and its exit status.
  struct Outcome: Sendable {
    let status: Int32
    let output: String
    let errors: String
  }

  /// The folder of the built products, which is where the test bundle is.
  static let products =
    Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL.deletingLastPathComponent()
    ?? Bundle.main.bundleURL

  /// Whether there is a `/dev/full` and file names need not be UTF-8.
  static let isLinux = FileManager.default.fileExists(atPath: "/dev/full")

  /// The browser, where one is installed.
  static let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  /// The folder of the command lines and their results.
  private let root: URL
  /// The folder in which the command lines run.
  private var folder: URL { root.appending(path: "files") }

  private init() throws {
    root = FileManager.default.temporaryDirectory.appending(path: "examples-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  /// Calls `body` with a shell in an empty folder, and removes the folder afterwards.
  static func open<Result>(_ body: (Shell) async throws -> Result) async throws -> Result {
    let shell = try Shell()
    defer { try? FileManager.default.removeItem(at: shell.root) }
    return try await body(shell)
  }

  /// Runs a command line in an empty folder.
  static func run(_ command: String) async throws -> Outcome { try await open { try await $0.run(command) } }

  /// Runs a command line and suspends until its end.
  func run(_ command: String) async throws -> Outcome {
    let results = root.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: results, withIntermediateDirectories: true)
    let (output, errors) = (results.appending(path: "output"), results.appending(path: "errors"))
    let script = """
      export no_proxy='*'; PATH='\(Self.products.path)':"$PATH"; cd '\(folder.path)'; { \(command)
      } > '\(output.path)' 2> '\(errors.path)'
      """
    let status = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        let pipe = unsafe popen(script, "r")
        continuation.resume(returning: unsafe pipe.map { unsafe pclose($0) } ?? -1)
      }
    }
    return Outcome(status: (status >> 8) & 0xFF, output: try Self.text(of: output), errors: try Self.text(of: errors))
  }

  /// Reads a file. `String(contentsOf:)` leaks a page for an empty file on Linux.
  private static func text(of file: URL) throws -> String {
    String(decoding: try FileHandle(forReadingFrom: file).readToEnd() ?? Data(), as: UTF8.self)
  }

  /// What Examples/README.md says that the command line prints.
  static func transcript(of command: String) throws -> String {
    let file = URL(filePath: #filePath).appending(path: "../../../Examples/README.md").standardized
    let page = try String(contentsOf: file, encoding: .utf8)
    let start = try #require(page.range(of: "\n$ \(command)\n"), "The page does not show \(command).").upperBound
    let lines = page[start...].split(separator: "\n", omittingEmptySubsequences: false)
    return lines.prefix { !$0.hasPrefix("```") && !$0.hasPrefix("$ ") }.map { $0 + "\n" }.joined()
  }
}
#endif
