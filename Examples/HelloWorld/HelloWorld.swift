import Foundation
import Operations

@main
struct HelloWorld {
  private let group = HelloWorldOperation()
  private let chain = Chain()

  private var operations: [AsyncOperation] { [group] + chain.operations }

  static func main() async throws {
    do {
      switch try Arguments(CommandLine.arguments.dropFirst()) {
      case .run: try await HelloWorld().run()
      case .trace(let path): try await HelloWorld().run(tracedInto: path)
      case .drawGraph: print(OperationGraph(HelloWorld().operations).mermaid(), terminator: "")
      case .showHelp: print(Arguments.help)
      }
    } catch let error as UsageError {
      complain(error.localizedDescription)
      exit(2)
    }
  }

  /// A group, and an observer that hears of its beginning and its end; then the chain.
  private func run() async throws {
    group.addObserver(
      OperationObserver(didStart: { _ in print("group started") }, didFinish: { _ in print("group done") })
    )
    try await OperationQueue().run(group)
    print("done")
    try await chain.run()
  }

  // MARK: Tracing

  private func run(tracedInto path: String) async throws {
    // A path that cannot be written to is better known before than after.
    try HelloWorld.write(Data(), to: path)
    let tracer = OperationTracer()
    tracer.trace(operations)
    try await run()
    try HelloWorld.write(tracer.chromeTrace(), to: path)
    // What has been printed comes first, also where both go into the same pipe, which `print` keeps it back from.
    fflush(nil)
    HelloWorld.complain("\n\(tracer.timeline())\n\(tracer.summary)")
  }

  private static func write(_ data: Data, to path: String) throws {
    do { try data.write(to: URL(filePath: path)) } catch {
      throw UsageError("“\(path)” cannot be written: \(error.localizedDescription)")
    }
  }

  private static func complain(_ message: String) { FileHandle.standardError.write(Data((message + "\n").utf8)) }
}
