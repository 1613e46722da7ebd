import Operations
import OperationsTestSupport

/// A suite whose snippets print into its journal.
protocol Printing { var printed: Journal<String> { get } }

extension Printing { func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) } }

func operation(_ name: String) -> AsyncOperation { AsyncOperation().named(name) }

typealias NoSuchPage = GettingStarted.NoSuchPage
typealias ServerBusy = NetworkingSnippets.ServerBusy

/// Loads any page except “missing” and “gone”.
final class Load: ResultOperation<String>, @unchecked Sendable {
  init(_ page: String) {
    super.init { if ["missing", "gone"].contains(page) { throw NoSuchPage(page: page) } else { "text of \(page)" } }
    named(page)
  }
}

@MainActor
final class Screen {
  static let shared = Screen()
  let shown = Journal<String>()

  nonisolated init() {}

  func show(_ text: String, _ completion: @escaping @MainActor () -> Void) {
    shown.write(text)
    completion()
  }

  func show(_ result: Result<String, any Error>) { shown.write((try? result.get()) ?? "an error") }
  func show(_ errors: [any Error]) { shown.write("\(errors.count) errors") }
  func refresh() { shown.write("refreshed") }
}
