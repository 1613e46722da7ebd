import Foundation

/// The rows, shared between the presenter and the view.
///
/// There is a lock, and no data race. But it is held for one call at a time: what the last call said need not be true
/// any more at the next.
final class LiveArray: @unchecked Sendable {
  private let lock = NSLock()
  private var model = Model()

  var version: Int { lock.withLock { model.version } }
  var count: Int { lock.withLock { model.rows.count } }

  /// Nil if there is no such row: an array would end the program.
  func row(at index: Int) -> Row? {
    lock.withLock { model.rows.indices.contains(index) ? model.rows[index] : nil }
  }

  func change() { lock.withLock { model.change() } }
}
