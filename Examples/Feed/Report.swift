/// What was shown, and whether it was as it has to be.
struct Report {
  let updates: Int
  let canvas: Canvas
  /// Those that did not get to the view, for newer ones came before the main thread had time.
  let coalescedOnTheWay: Int
  let isFaultWanted: Bool

  private var coalesced: Int { coalescedOnTheWay + canvas.coalesced }

  var lines: [String] {
    [
      "updates made: \(updates)",
      "frames drawn: \(canvas.framesDrawn)",
      "updates shown: \(canvas.framesDrawn), coalesced: \(coalesced)",
      "index faults: \(canvas.indexFaults)",
      "versions shown: \(canvas.versionsOnlyIncrease ? "only increasing" : "out of order"), the last is \(last)",
    ]
  }

  /// What was not as it has to be.
  var problems: [String] {
    [
      canvas.versionsOnlyIncrease ? nil : "A version was shown after a later one.",
      canvas.lastVersion == updates ? nil : "The last version was not shown.",
      canvas.framesDrawn + coalesced == updates ? nil : "Some updates were neither shown nor coalesced.",
      isFaultWanted == (canvas.indexFaults > 0) ? nil : "There were \(canvas.indexFaults) index faults.",
    ].compactMap(\.self)
  }

  private var last: String { canvas.lastVersion == updates ? "the latest" : "outdated" }
}
