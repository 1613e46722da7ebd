#if os(macOS) || os(Linux)
import Foundation
import Operations
import Testing

/// Mistakes that the compiler must refuse with a message that says what to write instead.
@Suite(.timeLimit(.minutes(5)))
struct CompilerMessageTests {
  private static let closure =
    "'==>' is unavailable: A closure is not an operation. Wrap it: a ==> ResultOperation { … }"
  private static let name = #"'==>' is unavailable: A name is not an operation. Name the operation: a ==> b.named("b")"#
  private static let retry =
    "'retry' is unavailable: An operation runs once. Make new ones: RetryOperation(attempts: 3) { _ in … }"
  private static let run = "'run()' is unavailable: A queue runs the operation: try await queue.run(operation)"

  private static let string = "cannot convert value of type 'String' to expected argument type 'ExclusivityKey'"
  private static let exclusive =
    "'exclusive(_:in:)' is unavailable: Make a key of the string: exclusive(ExclusivityKey(name))"
  private static let keys = #"'withKeys(_:in:_:)' is unavailable: Claim the key: withKeys(.exclusive("name")) { … }"#
  private static let code = "'timedOut' is unavailable: Catch the code: catch OperationError.Code.timedOut { … }"
  private static let block =
    "'callAsFunction()' is unavailable: The block receives the operation: { operation in operation.finish() }"

  /// Statements, and the error of each, which the page of `AsyncOperation` shows beside it. Right ones have none.
  private static let mistakes = [
    ("a ==> { b.cancel() }", closure),
    ("a ==> b ==> { b.cancel() }", closure),
    ("a ==> b ==> { try await b.completed() } ==> a", closure),
    (#"a ==> "b""#, name),
    (#"a ==> b ==> "c""#, name),
    (#"a ==> b ==> "c" ==> b"#, name),
    ("a ==> b ==> 1", "operator function '==>' requires that 'Int' inherit from 'Operation'"),
    (
      "a ==> b ==> GroupOperation?.none",
      "value of optional type 'GroupOperation?' must be unwrapped to a value of type 'GroupOperation'"
    ),
    ("try await b.run()", run),
    ("try await GroupOperation().run()", run),
    ("TaskOperation { 1 }.retry(3)", retry),
    ("b.exclusive(name)", exclusive),
    ("b.shared(name)", string),
    (#"try await withKeys("name") {}"#, keys),
    ("do { try await b.completed() } catch OperationError.timedOut {}", code),
    ("AsyncBlockOperation { finish in finish() }", block),
    (
      #"b.exclusive("a", "b").exclusive("\(name) b").exclusive(["a"], policy: .drop).exclusive(ExclusivityKey(name))"#,
      ""
    ),
    (#"try await withKeys {}; try await withKeys(.exclusive("a"), .shared("b")) { try await b.completed() }"#, ""),
    ("do { try await b.completed() } catch OperationError.Code.timedOut {} catch let error as OperationError {}", ""),
    ("_ = AsyncBlockOperation { operation in operation.finish() }; _ = AsyncBlockOperation { $0.finish() }", ""),
    ("_ = RetryOperation(attempts: 3, backoff: .exponential(initial: .seconds(1))) { _ in TaskOperation { 1 } }", ""),
  ]

  @Test func eachMistakeIsOneErrorWithARemedy() async throws {
    let functions = Self.mistakes.enumerated().map { number, mistake in
      "func mistake\(number)(_ a: Operation, _ b: AsyncOperation, _ name: String) async throws { \(mistake.0) }"
    }
    let errors = try await Self.errors(in: "import Foundation; import Operations\n" + functions.joined(separator: "\n"))
    let page = try Repository.file("Sources/Operations/Operations.docc/Symbols/AsyncOperation.md").lines
    for (number, mistake) in Self.mistakes.enumerated() {
      #expect(errors[number + 2, default: []] == (mistake.1.isEmpty ? [] : [mistake.1]), "\(mistake.0)")
      #expect(mistake.1.isEmpty || page.contains { $0.hasSuffix("| \(mistake.1) |") }, "\(mistake.1)")
    }
  }

  /// Closures for a condition, and whether they are refused because they return a `Bool`.
  private static let conditions = [
    ("_ in isUp", true), ("_ in !isUp", true), ("_ in true", true), ("$0.isCancelled", true),
    ("_ in await Task { true }.value", true), ("_ in let isMet = isUp; return isMet", true),
    ("_ in if isUp { return true }; return false", true), ("_ -> Bool in isUp", true), ("_ in", false),
    ("_ in throw Down()", false), ("_ in guard isUp else { throw Down() }", false), ("_ in try check()", false),
    ("try await $0.completed()", false), ("_ in if isUp { return }; throw Down()", false), ("_ in _ = isUp", false),
    ("_ in let isMet = isUp; if !isMet { throw Down() }", false), ("$0.cancel()", false), ("_ in count()", false),
    ("_ in do { try check() } catch { throw Down() }", false), ("_ in fatalError()", false),
    ("_ in try await Task.sleep(for: .zero)", false), ("_ in for _ in 0..<2 { try check() }", false),
    ("@MainActor _ in try check()", false), ("_ in defer { count() }; try check()", false),
  ]

  @Test func aConditionThatReturnsABool_isRefused_andAnyOtherIsNot() async throws {
    let functions = Self.conditions.enumerated().flatMap { number, condition in
      ["", "async "].map { "func f\(number)() \($0){ _ = OperationCondition(name: \"\") { \(condition.0) } }" }
    }
    let header = "import Operations; struct Down: Error {}; func check() throws {}; let isUp = true; "
    let count = "@discardableResult @Sendable func count() -> Int { 1 }\n"
    let errors = try await Self.errors(in: header + count + functions.joined(separator: "\n"))
    for (number, condition) in Self.conditions.enumerated() {
      for line in [2 * number + 2, 2 * number + 3] {
        let messages = errors[line, default: []]
        #expect(messages.isEmpty != condition.1, "\(condition.0)")
        #expect(messages.isEmpty || messages.contains { $0.contains("Throw") }, "\(messages)")
      }
    }
  }

  /// The page MigratingFromOperationQueue has these messages, so that a search finds the remedy beside them.
  @Test func overridesOfFoundationsMethodsAreRefusedInTheWordsOfThePage() async throws {
    let declarations = ["func start()", "func main()", "func cancel()", "var isReady: Bool", "var isExecuting: Bool"]
    let overrides = declarations.enumerated().map { number, declaration in
      let body = declaration.hasSuffix("Bool") ? "true" : ""
      return "class Old\(number): AsyncOperation, @unchecked Sendable { override \(declaration) { \(body) } }"
    }
    let errors = try await Self.errors(in: "import Operations\n" + overrides.joined(separator: "\n"))
    let page = try Repository.file("Sources/Operations/Operations.docc/MigratingFromOperationQueue.md").lines
    for (number, declaration) in declarations.enumerated() {
      let message = try #require(errors[number + 2]?.first, "\(declaration)")
      #expect(page.contains { $0.hasPrefix("| \(message) |") }, "\(message)")
    }
  }

  /// A subclass may declare methods with the names that are not available, and override them, as the compiler confirms.
  @Test func theNamesAreFreeForSubclasses() async throws {
    class Import: GroupOperation, @unchecked Sendable {
      func run() async throws {}
      func retry(_ count: Int) {}
    }
    final class Update: Import, @unchecked Sendable { override func run() async throws {} }
    final class Load: TaskOperation<Int>, @unchecked Sendable { override func run() async throws -> Int { 1 } }
    try await Update().run()
    Update().retry(1)
    #expect(try await Load().run() == 1)
  }

  /// Returns the errors of the compiler by their lines.
  private static func errors(in program: String) async throws -> [Int: [String]] {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
    let products = bundle?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
    let text = try await withFiles([("program.swift", program)]) { folder in
      let source = folder.appending(path: "program.swift").path
      return try await output(of: "swiftc -typecheck -swift-version 6 -I '\(products.path)/Modules' '\(source)'")
    }
    var errors: [Int: [String]] = [:]
    for match in text.matches(of: #/program\.swift:(\d+):\d+: error: (.*)/#) {
      if let line = Int(match.1) { errors[line, default: []].append(String(match.2)) }
    }
    if errors.isEmpty, !text.isEmpty { Issue.record("\(text)") }
    return errors
  }
}
#endif
