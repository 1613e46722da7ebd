import Foundation
import Operations
import Testing

struct ErrorTests {
  private func failure(_ path: String..., error: any Error) -> OperationFailure {
    OperationFailure(path: path, error: error)
  }

  @Test func operationErrorsAreEqualIfTheirCodesAre() {
    #expect(OperationError(.timedOut, "a") == OperationError(.timedOut, "b", underlyingErrors: [TestError("c")]))
    #expect(OperationError(.timedOut, "a") != OperationError(.shutDown, "a"))
    let codes: Set<OperationError.Code> = [
      .timedOut, .dependencyCycle, .conditionFailed, .inputUnavailable, .excluded, .waitCycle, .shutDown,
      .outputMissing,
    ]
    #expect(codes.count == 8)
  }

  @Test func aCatchClauseMayNameTheCode() {
    do {
      throw OperationError(.timedOut, "late")
    } catch OperationError.Code.shutDown {
      Issue.record("another code")
    } catch OperationError.Code.timedOut {
    } catch { Issue.record("not matched") }
    #expect(!(OperationError.Code.timedOut ~= TestError("a")))
  }

  @Test func theyAreReadable() {
    let error = OperationError(.inputUnavailable, "“b” has no input.", underlyingErrors: [TestError("no network")])
    #expect("\(error)" == "“b” has no input. Cause: no network")
    #expect(error.localizedDescription == "\(error)")
    let failure = failure("Import", "Download", "page 3", error: TestError("no network"))
    #expect("\(failure)" == "Import › Download › page 3: no network")
    #expect(failure.localizedDescription == "\(failure)")
    #expect("\(AggregateError([failure]))" == "\(failure)")
    let both = AggregateError([failure, failure])
    #expect("\(both)" == "2 failures:\n- \(failure)\n- \(failure)")
    #expect(both.localizedDescription == "\(both)")
  }

  @Test func thePrimaryFailureIsNotAnEcho() {
    let cause = TestError("cause")
    let echo = OperationError(.inputUnavailable, "echo", underlyingErrors: [cause])
    let condition = OperationError(.conditionFailed, "a dependency failed", underlyingErrors: [cause])
    let own = OperationError(.conditionFailed, "no battery", underlyingErrors: [TestError("12 %")])
    func primary(_ errors: any Error...) -> [String] {
      AggregateError(zip(["a", "b", "c"], errors).map { failure($0, error: $1) }).primary.path
    }
    #expect(primary(echo, condition, cause) == ["c"])
    #expect(primary(echo, own) == ["b"])
    #expect(primary(echo, echo) == ["a"])
  }

  @Test func errorsComeByType() {
    let aggregate = AggregateError([
      failure("a", error: TestError("1")), failure("b", error: OperationError(.timedOut, "t")),
      failure("c", error: TestError("2")),
    ])
    #expect(aggregate.errors(of: TestError.self) == [TestError("1"), TestError("2")])
    #expect(aggregate.errors(of: OperationError.self).count == 1)
  }
}
