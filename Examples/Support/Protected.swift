import Foundation

/// A value behind a lock. Unlike `Mutex` on Linux, the thread sanitizer knows this lock.
package final class Protected<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  package init(_ value: sending Value) { self.value = value }

  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try lock.withLock { try body(&value) }
  }
}
