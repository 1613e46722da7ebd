import Operations

/// Sends the view a snapshot of every version.
actor SnapshotPresenter: Presenter {
  nonisolated let scheduler = SerialScheduler(name: "snapshot presenter")
  private let view: SnapshotView
  private var model = Model()

  init(for view: SnapshotView) { self.view = view }

  var updates: Int { model.version }

  func update() {
    model.change()
    let snapshot = Snapshot(version: model.version, rows: model.rows)
    // At most one snapshot waits for the main thread, however fast the model changes.
    view.schedule(coalescing: "snapshot") { view in view.take(snapshot) }
  }
}

/// Shows the latest snapshot, once a frame.
final class SnapshotView: FeedView, @unchecked Sendable {
  var scheduler: SerialScheduler { .main }
  @Confined private(set) var canvas = Canvas()
  @Confined private var next: Snapshot?

  func take(_ snapshot: Snapshot) {
    if next != nil { canvas.countCoalesced() }
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
