import Foundation
import Operations

struct Photo: Sendable {
  let name: String
  let host: String
}

struct Thumbnail: Sendable {
  let photo: Photo
}

/// The work of the three stages. A test passes closures that wait on its clock.
struct Services: Sendable {
  let load: @Sendable (Photo) async throws -> Data
  let shrink: @Sendable (Data, Photo) async throws -> Thumbnail
  let upload: @Sendable (Thumbnail) async throws -> Void
}

/// Loads photos, shrinks each as soon as it is loaded, and uploads the thumbnails.
///
/// One group limits the photos in memory, and another the uploads. The dependencies lead from group to group.
func makeImport(of photos: [Photo], by services: Services, in domain: ExclusivityDomain = .shared) -> GroupOperation {
  let prepare = GroupOperation("prepare", maxConcurrentOperationCount: 4)
  let send = GroupOperation("send", maxConcurrentOperationCount: 3)
  for photo in photos {
    let load = TaskOperation { try await services.load(photo) }.named("load \(photo.name)")
    let shrink = TransformOperation { data in try await services.shrink(data, photo) }.named("shrink \(photo.name)")
    // A loaded photo is shrunk before the next one is loaded.
    shrink.queuePriority = .high
    let backoff = Backoff.exponential(initial: .milliseconds(40), cap: .seconds(5))
    let upload = RetryOperation(attempts: 3, backoff: backoff) { _ in
      try await services.upload(shrink.value)  // `shrink` has finished.
    }
    .named("upload \(photo.name)")
    .limited(ExclusivityKey("host \(photo.host)"), to: 2, in: domain)
    upload.addCondition(.noFailedDependencies)

    load.pass(to: shrink) ==> upload
    prepare.addOperations([load, shrink])
    send.addOperation(upload)
  }
  return GroupOperation([prepare, send]).named("import")
}
