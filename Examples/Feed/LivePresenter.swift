import Operations

/// Changes the array that it shares with the view, and tells the view that it has.
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
