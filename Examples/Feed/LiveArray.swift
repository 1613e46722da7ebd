import Foundation
import Operations

/// The rows, shared by the presenter and the view. A counterexample.
///
/// A lock protects every call, so there is no data race. But between two calls the array can change, so the result of
/// the first call may be outdated at the second.
final class LiveArray: @unchecked Sendable {
  private let lock = NSLock()
  private var model = Model()

  var version: Int { lock.withLock { model.version } }
  var count: Int { lock.withLock { model.rows.count } }

  /// Returns the row, or nil if it does not exist. An `Array` would trap.
  func row(at index: Int) -> Row? {
    lock.withLock { model.rows.indices.contains(index) ? model.rows[index] : nil }
  }

  func change() { lock.withLock { model.change() } }
}

/// Changes the array that it shares with the view, and notifies the view.
actor LivePresenter: Presenter {
  nonisolated let scheduler = SerialScheduler(name: "live presenter")
  private let view: LiveView
  private let array: LiveArray
  private(set) var updates = 0

  init(for view: LiveView, array: LiveArray) {
    self.view = view
    self.array = array
  }

  func update() {
    array.change()
    updates += 1
    view.schedule(coalescing: "reload") { view in view.reload() }
  }
}

/// Shows the array that it shares with the presenter, once a frame.
///
/// Like many list views, it reads the number of rows when it is notified of a change, and the rows themselves when it
/// draws. The presenter changes the array in between.
final class LiveView: FeedView, @unchecked Sendable {
  var scheduler: SerialScheduler { .main }
  @Confined private(set) var canvas = Canvas()
  @Confined private var rowCount: Int?
  private let array: LiveArray

  init(array: LiveArray) { self.array = array }

  func reload() {
    // The presenter changes the array before it notifies the view, so the version may be drawn already.
    if rowCount != nil || array.version == canvas.lastVersion { return canvas.countCoalesced() }
    rowCount = array.count
  }

  func drawFrame() {
    guard let rowCount = rowCount.take() else { return }
    canvas.draw(version: array.version, rowCount: rowCount) { index in array.row(at: index) }
  }
}
