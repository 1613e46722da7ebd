import Operations

/// Lives on the main scheduler.
protocol FeedView: Schedulable {
  var canvas: Canvas { get }

  /// Draws if there is something new.
  func drawFrame()
}
