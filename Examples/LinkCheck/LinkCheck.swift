import ExampleSupport
import Foundation
import Operations

@main
struct LinkCheck {
  private static let usage = """
    Usage: LinkCheck [--limit N] [--rate N] [--timeout SECONDS] [--json]
                     [--trace FILE] [--svg FILE] [--html FILE] URL

    Follows the links of the site at URL, and prints those that are broken with
    the pages they are on. Links to other sites are checked and not followed.
    Pages that robots.txt disallows are not visited.

      --limit N          the number of pages to load at once from a host,
                         by default 4
      --rate N           the number of pages to load in a second from a host,
                         by default 50
      --timeout SECONDS  when to give up on a page, by default 10
      --json             prints JSON
      --trace FILE       writes what ran when into FILE, for ui.perfetto.dev
      --svg FILE         draws the same into FILE, as a picture
      --html FILE        writes a page with all about the run into FILE
      --help             prints this text

    Exit status: 0 if no link is broken, 1 if one is, 2 if the arguments are
    wrong or URL cannot be loaded, 130 after Ctrl-C.
    """

  static func main() async {
    await Command.run(usage: usage) { arguments in try await check(with: try Options(&arguments)) }
  }

  private static func check(with options: Options) async throws -> Int32 {
    let files = options.files.map { (file: TraceFile($0.path), content: $0.content) }
    for (file, _) in files { try file.create() }
    let crawl = CrawlOperation(from: options.url, settings: options.settings)
    let tracer = OperationTracer()
    if !files.isEmpty { tracer.trace(crawl) }
    let interrupts = Interrupts { crawl.cancel() }
    defer { interrupts.stop() }
    let bar = ProgressBar.start(following: crawl.progressUpdates)
    // The report has the failures.
    try? await OperationQueue().run(crawl)
    await bar?.value
    for (file, content) in files { try file.write(content(tracer)) }
    let report = crawl.report
    if let error = report.startError {
      let reason = error.localizedDescription
      throw InputError("The page \(options.url) cannot be loaded: \(reason)" + (reason.hasSuffix(".") ? "" : "."))
    }
    print(options.printsJSON ? try report.json() : report.table)
    if crawl.isCancelled { return Interrupts.exitStatus }
    return report.broken.isEmpty ? 0 : 1
  }
}

/// The arguments.
private struct Options {
  private static let contents: [String: @Sendable (OperationTracer) -> Data] = [
    "--html": { Data($0.html().utf8) }, "--svg": { Data($0.svg().utf8) }, "--trace": { $0.chromeTrace() },
  ]

  private(set) var url: URL
  private(set) var settings = CrawlOperation.Settings()
  private(set) var printsJSON = false
  private(set) var files: [(path: String, content: (OperationTracer) -> Data)] = []

  init(_ arguments: inout Arguments) throws {
    var urls: [String] = []
    while let argument = arguments.next() {
      if let content = Self.contents[argument] {
        files.append((try arguments.value(of: argument, "a file to write to"), content))
        continue
      }
      switch argument {
      case "--limit": settings.limit = try arguments.number(of: argument, in: 1...Int.max)
      case "--rate": settings.rate = try arguments.number(of: argument, in: 1...Int.max)
      case "--timeout": settings.timeout = .seconds(try arguments.number(of: argument, in: 1...1_000_000))
      case "--json": printsJSON = true
      case _ where argument.hasPrefix("-"): throw UsageError(unexpected: argument)
      default: urls.append(argument)
      }
    }
    guard let text = urls.first else { throw UsageError("There is no URL: give the address of a page.") }
    if urls.count > 1 { throw UsageError(unexpected: urls[1]) }
    guard let url = URL(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme), url.host() != nil
    else {
      throw UsageError("“\(text)” is not the address of a page: give a URL that begins with http:// or https://.")
    }
    self.url = Page.normalized(url)
  }
}
