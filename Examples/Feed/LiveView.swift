import Operations

/// Shows the array that it shares with the presenter, once a frame. How not to do it.
///
/// Like many a list it asks for the number of rows when it hears that they have changed, to know how long it is, and
/// for the rows when it draws them. The presenter goes on in between.
final class LiveView: FeedView, @unchecked Sendable {
  let scheduler = SerialScheduler.main
  @Confined private(set) var canvas = Canvas()
  @Confined private var rowCount: Int?
  private let array: LiveArray

  init(array: LiveArray) { self.array = array }

  func reload() {
    // It is going to be drawn anyway, or has been: the presenter changes the array first and tells us then.
    if rowCount != nil || array.version == canvas.lastVersion { return canvas.noteCoalesced() }
    rowCount = array.count
  }

  func drawFrame() {
    guard let rowCount = rowCount.take() else { return }
    canvas.draw(version: array.version, rowCount: rowCount) { index in array.row(at: index) }
  }
}
