package import Foundation

/// The file that a trace is written to.
package struct TraceFile {
  private struct Unwritable: LocalizedError {
    let errorDescription: String?
  }

  private let path: String

  package init(_ path: String) { self.path = path }

  /// Creates the file. A file that cannot be written is an error of the input.
  package func create() throws {
    do { try write(Data()) } catch { throw InputError(error.localizedDescription) }
  }

  package func write(_ data: Data) throws {
    do { try data.write(to: URL(filePath: path)) } catch {
      throw Unwritable(errorDescription: "The file “\(path)” cannot be written: \(error.localizedDescription)")
    }
  }
}
