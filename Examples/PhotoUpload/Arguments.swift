/// What the program is to do, as said on the command line.
struct Arguments {
  static let help = """
    Usage: PhotoUpload [--files N] [--svg FILE]

    Shows 60 frames a second, and gets N photos ready for their upload meanwhile, in four ways, one after the other: on
    the main thread all at once, as many a frame as fit, and a thousand every five seconds (a half each time, and sooner, if
    there are fewer than 2000), and on a scheduler. Says how many frames each missed, and draws how long the frames took.

      --files N   how many photos; without it 1000, which take 20 seconds
      --svg FILE  draws the four charts into FILE, too
      --help      says this

    Exit status: 2 if the arguments are wrong, or FILE cannot be written.
    """
  /// An hour's patience.
  private static let most = 100_000

  private(set) var photos = 1000
  private(set) var picture: String?
  private(set) var isHelpWanted = false

  init(_ arguments: some Sequence<String>) throws {
    var rest = Array(arguments)[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h":
        isHelpWanted = true
        return
      case "--files": photos = try Arguments.photos(rest.popFirst())
      case "--svg":
        guard let path = rest.popFirst(), !path.isEmpty else { throw UsageError("--svg needs a file to write to.") }
        picture = path
      case _ where argument.hasPrefix("-"): throw UsageError("There is no option “\(argument)”.")
      default: throw UsageError("“\(argument)” is too many: the photos are made up, give their number with --files.")
      }
    }
  }

  private static func photos(_ text: String?) throws -> Int {
    guard let text else { throw UsageError("--files needs a number.") }
    guard let photos = Int(text), (1...most).contains(photos) else {
      throw UsageError("“\(text)” cannot be the number of photos: give a whole number from 1 to \(most).")
    }
    return photos
  }
}
