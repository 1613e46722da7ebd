import Foundation
import Operations

/// What ran when, and the file that is to have it.
struct TraceFile {
  let tracer = OperationTracer()
  let path: String

  /// A path that cannot be written to is better known before than after.
  func prepare() throws { try write(Data()) }

  func write() throws { try write(tracer.chromeTrace()) }

  private func write(_ data: Data) throws {
    do { try data.write(to: URL(filePath: path)) } catch {
      throw UsageError("“\(path)” cannot be written: \(error.localizedDescription)")
    }
  }
}
