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

  /// What the column says is what the compiler says.
  @Test func theyAreSendable() {
    func isSendable<T: Sendable>(_: T.Type) {}
    isSendable(AsyncOperation.self)
    isSendable(OperationObserver.self)
    isSendable(OperationCondition.self)
    isSendable(InputPolicy.self)
    isSendable(RetryDecision.self)
    isSendable(Backoff.self)
    isSendable(ExclusivityKey.self)
    isSendable(ExclusivityPolicy.self)
    isSendable(ExclusivityDomain.self)
    isSendable(SerialScheduler.self)
    isSendable(ScheduledEvent.self)
    isSendable(EventCapacity.self)
    isSendable(EventOrigin.self)
    isSendable(MainDelivery.self)
    isSendable(SchedulableObject<NSMutableArray>.self)
    isSendable(SchedulerStatistics.self)
    isSendable(SchedulerWatchdog.self)
    isSendable(SchedulerViolation.self)
    isSendable(OperationGraph.self)
    isSendable(CriticalPath.self)
    isSendable(StallReport.self)
    isSendable(OperationTracer.self)
    isSendable(OperationError.self)
    isSendable(OperationFailure.self)
    isSendable(AggregateError.self)
  }
}
