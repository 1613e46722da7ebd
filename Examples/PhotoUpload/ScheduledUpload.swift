import Foundation
import Operations

/// Gets photos ready on a scheduler of their own, which tells the main thread of each.
@MainActor
final class ScheduledUpload: Upload {
  let title = "On a scheduler"
  private let scheduler = SerialScheduler(name: "photos", qualityOfService: .utility)
  private let photos: [Photo]
  private var hasBegun = false
  private var ready = 0

  init(of photos: [Photo]) { self.photos = photos }

  var isDone: Bool { ready == photos.count }

  func work(at elapsed: Duration) {
    if hasBegun { return }
    hasBegun = true
    for photo in photos {
      scheduler.schedule({ photo.prepare() }, deliverOn: .main, { [self] _ in ready += 1 })
    }
  }
}
