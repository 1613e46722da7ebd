import Foundation

@main
@MainActor
struct PhotoUpload {
  private static let display = Display()

  static func main() async {
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      if arguments.isHelpWanted { return print(Arguments.help) }
      let photos = (0..<arguments.photos).map(Photo.init)
      // A path that cannot be written to is better known before than after.
      if let path = arguments.picture { try write("", to: path) }
      let recordings = await upload(photos)
      guard let path = arguments.picture else { return }
      try write(Picture(of: recordings).text, to: path)
      print("\nDrawn into \(path).")
    } catch {
      FileHandle.standardError.write(Data((error.localizedDescription + "\n").utf8))
      exit(2)
    }
  }

  private static func write(_ text: String, to path: String) throws {
    do { try Data(text.utf8).write(to: URL(filePath: path)) } catch {
      throw UsageError("“\(path)” cannot be written: \(error.localizedDescription)")
    }
  }

  private static func upload(_ photos: [Photo]) async -> [Recording] {
    for line in Budget.story { print(line) }
    let before = await drawOnly()
    print("With none, \(before.frames) were drawn and \(before.missed) missed, worst \(before.worst.milliseconds).")
    await tryOneTooMany()
    var recordings: [Recording] = []
    for pace in [Pace.atOnce, .batches(of: Budget.photosAFrame), .throttled(photos.count)] {
      recordings.append(await record(MainThreadUpload(of: photos, pace)))
    }
    let scheduled = await record(ScheduledUpload(of: photos))
    let surroundings = Surroundings(
      processors: ProcessInfo.processInfo.activeProcessorCount,
      baselines: [before, await drawOnly()],
      scheduled: scheduled.statistics
    )
    for remark in surroundings.remarks { print("\n" + remark) }
    return recordings + [scheduled]
  }

  /// What the machine makes of an app that does nothing else.
  private static func drawOnly() async -> FrameStatistics {
    let loop = FrameLoop(on: display)
    await loop.draw(frames: 60)
    return FrameStatistics(of: loop.frames)
  }

  private static func tryOneTooMany() async {
    let size = Budget.photosAFrame + 1
    let loop = FrameLoop(on: display)
    for _ in 0..<20 { await loop.draw { for number in 0..<size { Photo(number: number).prepare() } } }
    let late = loop.frames.count { $0.missed > 0 }
    print("With \(size) in each, \(late) of \(loop.frames.count) were late.")
  }

  private static func record(_ upload: some Upload) async -> Recording {
    let recording = await Recording(of: upload, on: display)
    print("\n== \(recording.title)")
    for (label, value) in recording.summary {
      print(label.padding(toLength: 16, withPad: " ", startingAt: 0) + value)
    }
    for line in TerminalChart(of: recording).lines { print(line) }
    return recording
  }
}
