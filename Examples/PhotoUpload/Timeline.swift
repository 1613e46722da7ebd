/// Frames over time, in columns of equal width: each has the longest of the frames that are in it.
struct Timeline {
  /// What is longer leaves the chart at the top.
  static let ceiling = Budget.frame * 3

  /// Zero where nothing was recorded.
  let columns: [Duration]

  init(of frames: [Frame], over length: Duration, columns count: Int) {
    var columns = Array(repeating: Duration.zero, count: count)
    let width = length / count
    for frame in frames {
      let first = min(max(0, Int(frame.start / width)), count - 1)
      let end = min(max(first + 1, Int(frame.end / width)), count)
      for column in first..<end { columns[column] = max(columns[column], frame.duration) }
    }
    self.columns = columns
  }
}
