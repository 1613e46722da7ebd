/// Gets photos ready on the main thread.
@MainActor
final class MainThreadUpload: Upload {
  private let photos: [Photo]
  private let pace: Pace
  private var ready = 0

  init(of photos: [Photo], _ pace: Pace) {
    self.photos = photos
    self.pace = pace
  }

  var title: String { "On the main thread, \(pace)" }
  var isDone: Bool { ready == photos.count }

  func work(at elapsed: Duration) {
    let turns = pace.turns(at: elapsed, done: ready, of: photos.count)
    for photo in photos[ready...].prefix(turns) { photo.prepare() }
    ready += turns
  }
}
