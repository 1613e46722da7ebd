/// A way to get photos ready for their upload.
@MainActor
protocol Upload {
  var title: String { get }
  /// Whether the main thread knows of every photo that it is ready.
  var isDone: Bool { get }

  /// Does what is to be done on the main thread before a frame is drawn.
  ///
  /// - Parameter elapsed: Since the first one.
  func work(at elapsed: Duration)
}
