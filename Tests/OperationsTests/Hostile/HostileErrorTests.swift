import Foundation
import Operations
import Testing

private enum PlainError: Error { case plain }

private struct SilentError: Error, CustomStringConvertible { var description: String { "" } }

private struct SilentLocalizedError: LocalizedError { var errorDescription: String? { "" } }

private func throwing(_ error: any Error) -> ResultOperation<Int> { ResultOperation { throw error }.named("thrower") }

/// What `run` of a group throws whose only member throws this: how the primary failure reads.
private func primary(_ error: any Error) async -> String {
  do { try await OperationQueue().run(GroupOperation("group") { throwing(error) }) } catch let error as AggregateError {
    return "\(error.primary)"
  } catch { return words(error) }
  return "success"
}

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
      operation.addCondition("c") { _ in throw SilentError() }
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
      await primary(OperationFailure(path: ["inner"], error: TestError("boom")))
    },
    HostileCase("a failure without a path", gets: "group › thrower: boom") {
      await primary(OperationFailure(path: [], error: TestError("boom")))
    },
    HostileCase("aggregates a thousand deep, as a cause", gets: "m") {
      var error: any Error = TestError("boom")
      for _ in 0..<1000 { error = AggregateError([OperationFailure(path: ["a"], error: error)]) }
      return "\(OperationError(.timedOut, "m", underlyingErrors: [error]))"
    },
    HostileCase("causes a thousand deep", gets: "m Cause: boom") {
      var error: any Error = TestError("boom")
      for _ in 0..<1000 { error = OperationError(.timedOut, "m", underlyingErrors: [error]) }
      return "\(error)"
    },
  ]

  @Test(arguments: kinds) func getsWhatIsExpected(_ line: HostileCase) async { await line.check() }

  static let codes: [OperationError.Code] = [
    .timedOut, .dependencyCycle, .conditionFailed, .inputUnavailable, .outputMissing, .excluded, .waitCycle,
    .overflow, .shutDown,
  ]

  @Test(arguments: codes) func aCodeOfTheUsersOwn_isKept(_ code: OperationError.Code) async {
    let mine = OperationError(code, "mine")
    #expect(await primary(mine) == "group › thrower: mine")
    let consumer = throwing(mine).map { $0 }
    let handedOn = await #expect(throws: OperationError.self) { try await OperationQueue().run(consumer) }
    #expect(handedOn?.code == .inputUnavailable)
    #expect(handedOn?.underlyingErrors.map { words($0) } == ["\(code)"])
    #expect(await ending(RetryOperation(attempts: 3) { _ in throwing(mine) }) == "\(code)")
  }
}
