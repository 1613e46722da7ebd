import Foundation
import Operations

/// A way to prepare photos for their upload.
@MainActor
protocol Upload {
  var title: String { get }
  /// Whether the main thread has been notified of every photo.
  var isDone: Bool { get }

  /// Does the work on the main thread that precedes a frame.
  ///
  /// - Parameter elapsed: The time since the upload started.
  func work(at elapsed: Duration)
}

/// Prepares photos on the main thread.
@MainActor
final class MainThreadUpload: Upload {
  private let photos: [Photo]
  private let pace: Pace
  private var preparedCount = 0

  init(of photos: [Photo], _ pace: Pace) {
    self.photos = photos
    self.pace = pace
  }

  var title: String { "On the main thread, \(pace)" }
  var isDone: Bool { preparedCount == photos.count }

  func work(at elapsed: Duration) {
    let count = pace.count(at: elapsed, prepared: preparedCount, of: photos.count)
    for photo in photos[preparedCount...].prefix(count) { photo.prepare(measuredBy: &ProcessorClock.main) }
    preparedCount += count
  }
}

/// How many photos to prepare in a frame on the main thread.
enum Pace: Sendable, CustomStringConvertible {
  case atOnce
  case batches(of: Int)
  case portions(of: Int, every: Duration)

  /// A portion of 1,000 every five seconds, or two smaller portions at a proportional interval if there are fewer than
  /// 2,000 photos.
  static func portions(of photos: Int) -> Self {
    let portion = min(1000, (photos + 1) / 2)
    return .portions(of: portion, every: .seconds(5) * portion / 1000)
  }

  /// Returns the number of photos to prepare in this frame.
  func count(at elapsed: Duration, prepared: Int, of photos: Int) -> Int {
    switch self {
    case .atOnce: photos - prepared
    case .batches(let size): min(size, photos - prepared)
    case .portions(let size, let interval): min((Int(elapsed / interval) + 1) * size, photos) - prepared
    }
  }

  var description: String {
    switch self {
    case .atOnce: "all at once"
    case .batches(let size): "\(size) a frame"
    case .portions(let size, let interval): "\(size) every \(interval.seconds)"
    }
  }
}

/// Prepares photos on a scheduler, which delivers each result on the main thread.
@MainActor
final class ScheduledUpload: Upload {
  let title = "On a scheduler"
  private let scheduler = SerialScheduler(name: "photos", qualityOfService: .utility)
  private let photos: [Photo]
  private var isStarted = false
  private var preparedCount = 0

  init(of photos: [Photo]) { self.photos = photos }

  var isDone: Bool { preparedCount == photos.count }

  func work(at elapsed: Duration) {
    if isStarted { return }
    isStarted = true
    // One event schedules the others, so that the main thread spends no time on them.
    scheduler.schedule { [self] in
      for photo in photos {
        scheduler.schedule({ ScheduledUpload.prepare(photo) }, deliverOn: .main) { [self] _ in didPreparePhoto() }
      }
    }
  }

  private nonisolated static func prepare(_ photo: Photo) {
    var clock = ProcessorClock()
    photo.prepare(measuredBy: &clock)
  }

  private func didPreparePhoto() {
    preparedCount += 1
    ProcessorClock.main.read()
  }
}
