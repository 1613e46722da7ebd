/// What is drawn on, and keeps count of it.
struct Canvas {
  private(set) var framesDrawn = 0
  private(set) var indexFaults = 0
  /// What the view was told, and did not draw, because something newer had come by the time of the frame.
  private(set) var coalesced = 0
  private(set) var lastVersion = 0
  private(set) var versionsOnlyIncrease = true

  mutating func noteCoalesced() { coalesced += 1 }

  /// - Parameter row: Nil for one that does not exist.
  mutating func draw(version: Int, rowCount: Int, row: (Int) -> Row?) {
    framesDrawn += 1
    if version <= lastVersion { versionsOnlyIncrease = false }
    lastVersion = version
    indexFaults += (0..<rowCount).count { index in row(index) == nil }
  }
}
