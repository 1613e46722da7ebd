import ExampleSupport
import Foundation

@main
@MainActor
struct PhotoUpload {
  private static let usage = """
    Usage: PhotoUpload [--files N] [--svg FILE]

    Draws 60 frames a second, and prepares N photos for their upload meanwhile,
    in four ways: on the main thread all at once, as many per frame as fit, or a
    large portion at regular intervals; and on a scheduler. Prints how many
    frames each way missed, and draws a chart of what the frames cost.

    A frame costs the processor time that the main thread used since the end of
    the frame before. Other programs on the machine do not change it.

      --files N   the number of photos, 1000 by default, which take 20 seconds
      --svg FILE  also draws the four charts into FILE
      --help      prints this text

    Exit status: 0, 1 if the output cannot be written, 2 if the arguments are
    wrong or FILE cannot be written.
    """

  private static let display = Display()

  static func main() async {
    await Command.run(usage: usage) { arguments in
      var (count, path) = (1000, String?.none)
      while let argument = arguments.next() {
        switch argument {
        case "--files": count = try arguments.number(of: argument, in: 1...100_000)
        case "--svg": path = try arguments.value(of: argument, "a file to write to")
        default: throw UsageError(unexpected: argument)
        }
      }
      // Detects a path that cannot be written before the upload.
      if let path { try write("", to: path) }
      warnOfDebugBuild()
      let recordings = await upload((0..<count).map(Photo.init))
      if let path {
        try write(SVGChart(of: recordings).text, to: path)
        print("\nThe charts are in \(path).")
      }
      return 0
    }
  }

  private static func warnOfDebugBuild() {
    #if DEBUG
    Command.complain("This is a debug build. For representative figures: swift run -c release PhotoUpload")
    #endif
  }

  private static func write(_ text: String, to path: String) throws {
    do { try Data(text.utf8).write(to: URL(filePath: path)) } catch {
      throw InputError("The file “\(path)” cannot be written: \(error.localizedDescription)")
    }
  }

  private static func upload(_ photos: [Photo]) async -> [Recording] {
    for line in Budget.summary { print(line) }
    let idle = await frames(30) {}
    print("Without photos, \(idle.count { $0.missed > 0 }) of \(idle.count) frames were late.")
    let size = Budget.photosPerFrame + 1
    let full = await frames(20) {
      for number in 0..<size { Photo(number: number).prepare(measuredBy: &ProcessorClock.main) }
    }
    print("With \(size) photos in each, \(full.count { $0.missed > 0 }) of \(full.count) were late.")
    var recordings: [Recording] = []
    for pace in [Pace.atOnce, .batches(of: Budget.photosPerFrame), .portions(of: photos.count)] {
      recordings.append(await record(MainThreadUpload(of: photos, pace)))
    }
    return recordings + [await record(ScheduledUpload(of: photos))]
  }

  private static func frames(_ count: Int, with work: () -> Void) async -> [Frame] {
    let loop = FrameLoop(on: display)
    for _ in 0..<count { await loop.draw(work) }
    return loop.frames
  }

  private static func record(_ upload: some Upload) async -> Recording {
    let recording = await Recording(of: upload, on: display)
    print("\n== \(recording.title)")
    for (label, value) in recording.summary {
      print(label.padding(toLength: 16, withPad: " ", startingAt: 0) + value)
    }
    for line in TerminalChart(of: recording, width: Command.width).lines { print(line) }
    try? Command.flush()
    return recording
  }
}
