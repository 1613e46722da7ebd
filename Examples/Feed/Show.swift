import Operations

/// Follows the model on its own scheduler, and notifies the view.
protocol Presenter: ScheduledActor {
  /// The number of times the presenter has notified the view.
  var updates: Int { get }

  /// Changes the model once and notifies the view.
  func update()
}

extension Presenter {
  /// Changes the model as fast as possible until the task is cancelled, and then once more.
  func follow() async {
    while !Task.isCancelled {
      update()
      await Task.yield()
    }
    update()
  }
}

/// A view on the main scheduler.
protocol FeedView: Schedulable {
  var canvas: Canvas { get }

  /// Draws a frame if there is something new.
  func drawFrame()
}

/// Counts what a view draws.
struct Canvas {
  private(set) var framesDrawn = 0
  /// The number of rows that did not exist when they were drawn.
  private(set) var indexFaults = 0
  /// The number of updates that reached the view and were replaced by a newer one before the next frame.
  private(set) var coalesced = 0
  private(set) var lastVersion = 0
  private(set) var versionsOnlyIncrease = true

  mutating func countCoalesced() { coalesced += 1 }

  /// - Parameter row: Returns nil for a row that does not exist.
  mutating func draw(version: Int, rowCount: Int, row: (Int) -> Row?) {
    framesDrawn += 1
    if version <= lastVersion { versionsOnlyIncrease = false }
    lastVersion = version
    indexFaults += (0..<rowCount).count { index in row(index) == nil }
  }
}

/// Runs a presenter and draws its view frame by frame.
@MainActor
struct Show {
  private static let frame = Duration.milliseconds(8)
  /// The limit of the frames drawn while waiting for a fault. With a running presenter, about every second frame has
  /// one.
  private static let maxExtraFrames = 10_000

  let presenter: any Presenter
  let view: any FeedView

  /// - Parameter expectsFaults: Whether to draw more frames until a row was missing.
  func run(frames: Int, expectsFaults: Bool) async -> Report {
    let coalescedBefore = SerialScheduler.main.statistics.eventsCoalesced
    let following = Task { [presenter] in await presenter.follow() }
    while needsFrame(of: frames, expectsFaults) {
      await Show.nextFrame()
      view.drawFrame()
    }
    following.cancel()
    await following.value
    // Draws the presenter's last update.
    await SerialScheduler.main.drained()
    view.drawFrame()
    return Report(
      updates: await presenter.updates,
      canvas: view.canvas,
      coalescedOnTheWay: SerialScheduler.main.statistics.eventsCoalesced - coalescedBefore,
      expectsFaults: expectsFaults
    )
  }

  /// Returns whether to draw a frame before the last one, which shows the presenter's last update.
  private func needsFrame(of frames: Int, _ expectsFaults: Bool) -> Bool {
    let canvas = view.canvas
    if canvas.framesDrawn < frames - 1 { return true }
    return expectsFaults && canvas.indexFaults == 0 && canvas.framesDrawn < frames + Show.maxExtraFrames
  }

  /// Simulates a display that requests frames. The view receives updates meanwhile.
  private static func nextFrame() async {
    await withCheckedContinuation { continuation in
      SerialScheduler.main.schedule(after: frame) { continuation.resume() }
    }
  }
}

/// The result of a show.
struct Report {
  let updates: Int
  let canvas: Canvas
  /// The number of updates that were replaced by a newer one before they reached the view.
  let coalescedOnTheWay: Int
  let expectsFaults: Bool

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

  /// The differences from the expected result.
  var problems: [String] {
    [
      canvas.versionsOnlyIncrease ? nil : "A version was shown after a later one.",
      canvas.lastVersion == updates ? nil : "The last version was not shown.",
      canvas.framesDrawn + coalesced == updates ? nil : "Some updates were neither shown nor coalesced.",
      expectsFaults == (canvas.indexFaults > 0) ? nil : "There were \(canvas.indexFaults) index faults.",
    ].compactMap(\.self)
  }

  private var last: String { canvas.lastVersion == updates ? "the latest" : "outdated" }
}
