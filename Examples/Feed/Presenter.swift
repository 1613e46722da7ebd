import Operations

/// Follows the model, off the main thread, and tells the view on it.
protocol Presenter: ScheduledActor {
  /// How often it has told the view.
  var updates: Int { get }

  /// Changes the model once, and tells the view.
  func update()
}

extension Presenter {
  /// Changes the model as fast as it can until the task is cancelled, and then once more: the last is to be shown, too.
  func follow() async {
    while !Task.isCancelled {
      update()
      await Task.yield()
    }
    update()
  }
}
