import Foundation
import Operations
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LandingPageSnippets {
  @Test func theOverview() async throws {
    let url = URL(filePath: "page")
    let fetch: @Sendable (URL) async throws -> String = { _ in "one two three" }

    let queue = OperationQueue()
    let text = TaskOperation { try await fetch(url) }
    let words = text.map { $0.split(separator: " ").count }
    print(try await queue.run(graphEndingIn: words))

    #expect(try await words.value == 3)
  }
}
