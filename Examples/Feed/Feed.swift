import ExampleSupport
import Foundation
import Operations

@main
@MainActor
struct Feed {
  private static let usage = """
    Usage: Feed [--frames N]

    Shows a feed that changes in the background all the time: first from
    snapshots, then from an array that the background and the view share. Prints
    what was shown, and how often a row that was to be drawn no longer existed.

      --frames N  the number of frames to draw, 120 by default; the second part
                  draws more until a row is missing
      --help      prints this text

    Exit status: 0, 1 if the result is not as expected or the output cannot be
    written, 2 if the arguments are wrong.
    """

  static func main() async {
    await Command.run(usage: usage) { arguments in
      var frames = 120
      while let argument = arguments.next() {
        guard argument == "--frames" else { throw UsageError(unexpected: argument) }
        frames = try arguments.number(of: argument, in: 1...1_000_000)
      }
      return await show(frames: frames) ? 0 : 1
    }
  }

  /// Returns whether both shows went as expected.
  private static func show(frames: Int) async -> Bool {
    let snapshots = await showOfSnapshots().run(frames: frames, expectsFaults: false)
    let isGood = printReport(snapshots, titled: "snapshots")
    print()
    let array = await showOfLiveArray().run(frames: frames, expectsFaults: true)
    return printReport(array, titled: "live array") && isGood
  }

  private static func showOfSnapshots() -> Show {
    let view = SnapshotView()
    return Show(presenter: SnapshotPresenter(for: view), view: view)
  }

  private static func showOfLiveArray() -> Show {
    let array = LiveArray()
    let view = LiveView(array: array)
    return Show(presenter: LivePresenter(for: view, array: array), view: view)
  }

  /// Returns whether the show went as expected.
  private static func printReport(_ report: Report, titled title: String) -> Bool {
    print("== \(title)")
    for line in report.lines { print(line) }
    try? Command.flush()
    for problem in report.problems { Command.complain("\(title): \(problem)") }
    return report.problems.isEmpty
  }
}
