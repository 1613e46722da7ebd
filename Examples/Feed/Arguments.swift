/// What the program is to do, as said on the command line.
struct Arguments {
  static let help = """
    Usage: Feed [--frames N]

    Shows a feed that changes in the background all the time, first by snapshots of it, then by an array that the
    background and the view share, and says what was shown and how often a row was not there any more.

      --frames N  how many frames to draw, 120 if it is not said; the array has more if no row was missing until then
      --help      says this

    Exit status: 1 if something was not as it has to be, 2 if the arguments are wrong.
    """

  private(set) var frames = 120
  private(set) var isHelpWanted = false

  init(_ arguments: some Sequence<String>) throws {
    var rest = Array(arguments)[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h":
        isHelpWanted = true
        return
      case "--frames": frames = try Arguments.frames(rest.popFirst())
      default: throw UsageError("There is no argument “\(argument)”.\n\n\(Arguments.help)")
      }
    }
  }

  private static func frames(_ text: String?) throws -> Int {
    guard let text else { throw UsageError("--frames needs a number.\n\n\(help)") }
    guard let frames = Int(text), (1...1_000_000).contains(frames) else {
      throw UsageError("“\(text)” cannot be the number of frames: give one from 1 to 1000000.\n\n\(help)")
    }
    return frames
  }
}
