import Foundation
import Operations
import OperationsTestSupport
import Testing

private enum PlainError: Error { case plain }

private struct SilentError: Error, CustomStringConvertible {
  var description: String { "" }
}

private struct SilentLocalizedError: LocalizedError {
  var errorDescription: String? { "" }
}

/// A group that replaces the errors of its members.
private final class ReplacingGroup: GroupOperation, @unchecked Sendable {
  private let replace: @Sendable ([any Error]) -> [any Error]

  init(_ members: [Operation], _ replace: @escaping @Sendable ([any Error]) -> [any Error]) {
    self.replace = replace
    super.init(members)
  }

  override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] { replace(errors) }
}

private func failure(_ error: any Error, _ path: String...) -> OperationFailure {
  OperationFailure(path: path, error: error)
}

private func throwing(_ error: any Error) -> ResultOperation<Int> { ResultOperation { throw error }.named("thrower") }

/// What `run` of a group throws whose only member throws this: how the primary failure reads.
private func primary(_ error: any Error) async -> String {
  do { try await OperationQueue().run(GroupOperation("group") { throwing(error) }) } catch let error as AggregateError {
    return "\(error.primary)"
  } catch { return words(error) }
  return "success"
}

/// Errors of all kinds, thrown from every place that can throw.
@Suite(.timeLimit(.minutes(5)))
struct HostileErrorTests {
  static let kinds = [
    HostileCase("an enum", gets: "group › thrower: plain") { await primary(PlainError.plain) },
    HostileCase("one of Foundation's", gets: "true") {
      "\(await primary(NSError(domain: "d", code: 7)).hasPrefix("group › thrower: "))"
    },
    HostileCase("one that says nothing", gets: "group › thrower: SilentError") { await primary(SilentError()) },
    HostileCase("one that has nothing to say", gets: "group › thrower: SilentLocalizedError") {
      await primary(SilentLocalizedError())
    },
    HostileCase(
      "one that says nothing, in a condition",
      gets: "“x” did not run because its condition “c” was not met: SilentError."
    ) {
      let operation = AsyncOperation().named("x")
      operation.addCondition(OperationCondition(name: "c") { _ in throw SilentError() })
      do { try await OperationQueue().run(operation) } catch { return "\(error)" }
      return "success"
    },
    HostileCase("one that says nothing, as a cause", gets: "It failed. Cause: SilentError") {
      "\(OperationError(.timedOut, "It failed.", underlyingErrors: [SilentError()]))"
    },
    HostileCase("one that says a megabyte", gets: "\((1 << 20) + "group › thrower: ".count)") {
      "\(await primary(TestError(String(repeating: "x", count: 1 << 20))).count)"
    },
    HostileCase("a failure", gets: "group › thrower: inner: boom") {
      await primary(failure(TestError("boom"), "inner"))
    },
    HostileCase("a failure of nobody", gets: "group › thrower: boom") { await primary(failure(TestError("boom"))) },
    HostileCase("aggregates a thousand deep, as a cause", gets: "m Cause: boom") {
      var error: any Error = TestError("boom")
      for _ in 0..<1000 { error = AggregateError([failure(error, "a")]) }
      // No further is looked than makes sense.
      let text = OperationError(.timedOut, "m", underlyingErrors: [error]).description
      return text == "m" ? "m Cause: boom" : text
    },
    HostileCase("causes a thousand deep", gets: "m Cause: boom") {
      var error: any Error = TestError("boom")
      for _ in 0..<1000 { error = OperationError(.timedOut, "m", underlyingErrors: [error]) }
      return "\(error)"
    },
  ]

  static let own: [HostileCase] = {
    let codes: [OperationError.Code] = [
      .timedOut, .dependencyCycle, .conditionFailed, .inputUnavailable, .outputMissing, .excluded, .waitCycle,
      .overflow, .shutDown,
    ]
    return codes.flatMap { code in
      [
        HostileCase("a \(code) of the user's own", gets: "group › thrower: mine") {
          await primary(OperationError(code, "mine"))
        },
        HostileCase("a \(code) of the user's own, handed on", gets: "inputUnavailable, because of \(code)") {
          let last = throwing(OperationError(code, "mine")).map { $0 }
          do { return "\(try await OperationQueue().run(last))" } catch let error as OperationError {
            return "\(error.code), because of \(error.underlyingErrors.map { words($0) }.joined())"
          }
        },
        HostileCase("a \(code) of the user's own, in a retried attempt", gets: "\(code)") {
          "\(try await OperationQueue().run(RetryOperation(attempts: 3) { _ in throwing(OperationError(code, "mine")) }))"
        },
      ]
    }
  }()

  static let ends = [
    HostileCase("a group that replaces most of many errors", gets: "5999: g › m: boom 0, g › m: new 1, g › m: boom 2") {
      let member = AsyncBlockOperation { $0.finish(withErrors: (0..<6000).map { TestError("boom \($0)") }) }.named("m")
      let group = ReplacingGroup([member]) { errors in
        errors.dropLast().enumerated().map { $0.offset.isMultiple(of: 2) ? $0.element : TestError("new \($0.offset)") }
      }
      _ = await ending(group.named("g"))
      return "\(group.failures.count): \(group.failures.prefix(3).map { "\($0)" }.joined(separator: ", "))"
    },
    HostileCase("the one failure behind thousands of echoes", gets: "root") {
      let echoes = (0..<3000).map { index in
        let root = OperationError(.timedOut, "the root")
        return failure(OperationError(.conditionFailed, "echo \(index)", underlyingErrors: [root]), "echo \(index)")
      }
      return AggregateError(echoes + [failure(OperationError(.timedOut, "the root"), "root")]).primary.path.joined()
    },
  ]

  @Test(arguments: kinds + own + ends) func getsWhatIsExpected(_ line: HostileCase) async { await line.check() }
}
