import Foundation
import Operations

@main
@MainActor
struct Feed {
  static func main() async {
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      if arguments.isHelpWanted { return print(Arguments.help) }
      let isGood = await show(frames: arguments.frames)
      exit(isGood ? 0 : 1)
    } catch {
      complain(error.localizedDescription)
      exit(2)
    }
  }

  private static func show(frames: Int) async -> Bool {
    let snapshots = await showSnapshots().run(frames: frames, isFaultWanted: false)
    let isGood = tell("snapshots", snapshots)
    print()
    let array = await showArray().run(frames: frames, isFaultWanted: true)
    return tell("live array", array) && isGood
  }

  private static func showSnapshots() -> Show {
    let view = SnapshotView()
    return Show(presenter: SnapshotPresenter(for: view), view: view)
  }

  private static func showArray() -> Show {
    let array = LiveArray()
    let view = LiveView(array: array)
    return Show(presenter: LivePresenter(for: view, array: array), view: view)
  }

  /// - Returns: Whether all was as it has to be.
  private static func tell(_ title: String, _ report: Report) -> Bool {
    print("== \(title)")
    for line in report.lines { print(line) }
    for problem in report.problems { complain("\(title): \(problem)") }
    return report.problems.isEmpty
  }

  private static func complain(_ message: String) { FileHandle.standardError.write(Data((message + "\n").utf8)) }
}
