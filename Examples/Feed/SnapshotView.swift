import Operations

/// Shows the latest snapshot, once a frame.
final class SnapshotView: FeedView, @unchecked Sendable {
  let scheduler = SerialScheduler.main
  @Confined private(set) var canvas = Canvas()
  @Confined private var next: Snapshot?

  func take(_ snapshot: Snapshot) {
    if next != nil { canvas.noteCoalesced() }
    next = snapshot
  }

  func drawFrame() {
    guard let snapshot = next.take() else { return }
    let rows = snapshot.rows
    canvas.draw(version: snapshot.version, rowCount: rows.count) { index in
      rows.indices.contains(index) ? rows[index] : nil
    }
  }
}
