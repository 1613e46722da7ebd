import ExampleSupport
import Foundation
import Operations

@main
struct Pipeline {
  private static let usage = """
    Usage: Pipeline [--svg FILE]

    Imports ten photos in three stages: loads and shrinks four at once, and
    uploads three at once, two per host. One photo cannot be loaded, and one
    upload fails at its first attempt. Draws the run.

      --svg FILE  draws the run into FILE, as a picture

    Exit status: 0, 1 if the output cannot be written, 2 if the arguments are
    wrong.
    """

  static func main() async {
    await Command.run(usage: usage) { arguments in
      var file: TraceFile?
      while let argument = arguments.next() {
        guard argument == "--svg" else { throw UsageError(unexpected: argument) }
        file = TraceFile(try arguments.value(of: argument, "a file to write to"))
      }
      try file?.create()
      let photos = makeImport(of: Camera.photos, by: Camera.services(on: ContinuousClock()))
      let tracer = OperationTracer()
      tracer.trace(photos)
      do { try await OperationQueue().run(photos) } catch let error as AggregateError {
        for failure in error.rootFailures { print(failure) }
      }
      print(tracer.timeline(), terminator: "")
      try file?.write(Data(tracer.svg(width: 640).utf8))
      return 0
    }
  }
}

/// Ten photos, and services that only take time.
enum Camera {
  struct Unreadable: LocalizedError {
    var errorDescription: String? { "the file cannot be read" }
  }
  struct Busy: Error {}

  static let photos = (0..<10).map { Photo(name: "\($0)", host: $0 < 5 ? "north" : "south") }

  static func services(on clock: any Clock<Duration>) -> Services {
    let attempts = Protected<[String: Int]>([:])
    return Services(
      load: { photo in
        try await clock.sleep(for: .milliseconds(40))
        if photo.name == "5" { throw Unreadable() }
        return Data()
      },
      shrink: { _, photo in
        try await clock.sleep(for: .milliseconds(20))
        return Thumbnail(photo: photo)
      },
      upload: { thumbnail in
        let name = thumbnail.photo.name
        let attempt = attempts.withLock { attempts in
          attempts[name, default: 0] += 1
          return attempts[name]
        }
        try await clock.sleep(for: .milliseconds(60))
        if name == "2", attempt == 1 { throw Busy() }
      }
    )
  }
}
