/// What there is time for in a frame.
enum Budget {
  /// From one frame of the screen to the next.
  static let frame = Duration.seconds(1) / 60
  static let drawing = Duration.milliseconds(10)
  /// What has to be done for a photo before it can be uploaded.
  static let photo = Duration.microseconds(2600)

  /// How many photos fit beside the drawing.
  static let photosAFrame = Int((frame - drawing) / photo)

  static func work(photos: Int) -> Duration { drawing + photo * photos }

  /// How many frames of the screen go by until this is done, beyond the one that it has.
  static func missed(after duration: Duration) -> Int { max(0, Int((duration / frame).rounded(.up)) - 1) }

  static var story: [String] {
    let (fitting, tooMany) = (photosAFrame, photosAFrame + 1)
    return [
      "60 frames a second leave \(frame.milliseconds) for each, and drawing takes \(drawing.milliseconds) of them. "
        + "A photo takes \(photo.milliseconds):",
      "\(fitting) a frame fit (\(work(photos: fitting).milliseconds)), "
        + "\(tooMany) do not (\(work(photos: tooMany).milliseconds)).",
    ]
  }
}
