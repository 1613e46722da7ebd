import Operations

/// Hands the view a snapshot of every version.
actor SnapshotPresenter: Presenter {
  nonisolated let scheduler = SerialScheduler(name: "snapshot presenter")
  private let view: SnapshotView
  private var model = Model()

  init(for view: SnapshotView) { self.view = view }

  var updates: Int { model.version }

  func update() {
    model.change()
    let snapshot = Snapshot(version: model.version, rows: model.rows)
    // However fast we are, no more than one of them waits for the main thread.
    view.schedule(coalescing: "snapshot") { view in view.take(snapshot) }
  }
}
