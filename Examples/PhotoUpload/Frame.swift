/// What became of a frame.
struct Frame: Sendable {
  /// When the screen asked for it, since the beginning of the recording.
  let start: Duration
  /// From then until it was drawn.
  let duration: Duration
  /// How much of that the main thread had something to do, and no processor to do it.
  let stolen: Duration

  var missed: Int { Budget.missed(after: duration) }
  /// When the screen can ask for the next one.
  var end: Duration { start + Budget.frame * (missed + 1) }
}
