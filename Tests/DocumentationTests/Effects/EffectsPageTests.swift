import Foundation
import Operations
import Testing

/// The page that tells what each type does has each of them.
struct EffectsPageTests {
  private static let path = "Sources/Operations/Operations.docc/Effects.md"

  /// The names of public types that stand at the top level of a file. Nested ones belong to theirs.
  static func publicTypes(in source: SourceText) -> [String] {
    let kinds: Set<Substring> = ["class", "struct", "enum", "protocol", "actor"]
    return source.lines.compactMap { line in
      let words = line.split { $0 == " " || $0 == ":" || $0 == "<" || $0 == "{" }
      guard line.hasPrefix("public ") || line.hasPrefix("open "), let kind = words.firstIndex(where: kinds.contains),
        kind + 1 < words.count, words[..<kind].allSatisfy({ ["public", "open", "final", "indirect"].contains($0) })
      else { return nil }
      return String(words[kind + 1])
    }
  }

  /// Those that begin a row of a table.
  static func types(in page: SourceText) -> [String] {
    page.lines.compactMap { line in
      guard line.hasPrefix("| ``"), let end = line.dropFirst(4).firstIndex(of: "`") else { return nil }
      return String(line[line.index(line.startIndex, offsetBy: 4)..<end])
    }
  }

  @Test func everyPublicTypeHasARow() throws {
    let page = try Repository.file(Self.path)
    let rows = Set(Self.types(in: page))
    let types = try Repository.files(in: "Sources/Operations", ending: "swift").flatMap(Self.publicTypes)
    #expect(types.count > 35)
    let missing = types.filter { !rows.contains($0) }
    #expect(missing.isEmpty, "These types are missing on the page")
  }

  @Test func publicTypesAreFound() {
    let source = SourceText(
      path: "A.swift",
      text: """
        open class A<T>: B {
          public enum Nested {}
        }
        public final class C {}
        @propertyWrapper
        public struct D<Value> {}
        public protocol E: Actor {
        public func class_() {}
        final class F {}
        public actor G {
        """
    )
    #expect(Self.publicTypes(in: source) == ["A", "C", "D", "E", "G"])
    let page = SourceText(path: "page.md", text: "| ``A`` | x |\n| ``B/c`` | ``D`` |\n``E``")
    #expect(Self.types(in: page) == ["A", "B/c"])
  }

  /// The compiler confirms the column “Sendable”.
  @Test func theyAreSendable() {
    let types: [any Sendable.Type] = [
      AsyncOperation.self, OperationObserver.self, OperationCondition.self, InputPolicy.self, RetryDecision.self,
      Backoff.self, ExclusivityKey.self, ExclusivityPolicy.self, ExclusivityDomain.self, SerialScheduler.self,
      ScheduledEvent.self, EventCapacity.self, EventOrigin.self, MainDelivery.self,
      SchedulableObject<NSMutableArray>.self, SchedulerStatistics.self, SchedulerWatchdog.self,
      SchedulerViolation.self, OperationGraph.self, CriticalPath.self, StallReport.self, OperationTracer.self,
      OperationError.self, OperationFailure.self, AggregateError.self,
    ]
    #expect(types.count == 25)
  }
}
