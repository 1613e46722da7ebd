/// What the program is to do, as said on the command line.
enum Arguments {
  case run
  /// Writes what ran when into a file, too.
  case trace(path: String)
  case drawGraph
  case showHelp

  static let help = """
    Usage: HelloWorld [--graph | --trace FILE]

    Runs a group of two operations, and then a chain of three over three queues. Each prints a line.

      --graph       prints the operations and what they wait for as a Mermaid graph, and runs none
      --trace FILE  writes what ran when into FILE, for ui.perfetto.dev, and draws it on standard error
      --help        says this

    Exit status: 2 if the arguments are wrong, or FILE cannot be written.
    """

  init(_ arguments: some Sequence<String>) throws {
    var rest = Array(arguments)[...]
    switch rest.popFirst() {
    case nil: self = .run
    case "--help", "-h":
      self = .showHelp
      return
    case "--graph": self = .drawGraph
    case "--trace":
      guard let path = rest.popFirst(), !path.isEmpty else {
        throw UsageError("--trace needs a file to write to.\n\n\(Arguments.help)")
      }
      self = .trace(path: path)
    case let argument?: throw UsageError("There is no argument “\(argument)”.\n\n\(Arguments.help)")
    }
    if let argument = rest.first { throw UsageError("“\(argument)” is too many.\n\n\(Arguments.help)") }
  }
}
