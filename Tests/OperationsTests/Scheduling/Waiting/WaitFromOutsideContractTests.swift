#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Somebody else comes while A waits for B, which waits for A.
///
/// In processes of their own: who hangs here takes every other wait with him.
@Suite(.timeLimit(.minutes(5)))
struct WaitFromOutsideContractTests {
  /// A and B, deep in a chain that goes there and back, until it is let go.
  private struct Chain {
    let a = SerialScheduler(name: "Alpha")
    let b = SerialScheduler(name: "Beta")
    let end = Gate()

    init() async {
      // Only if it hangs.
      DispatchQueue.global().asyncAfter(deadline: .now() + 20) { WaitFromOutsideContractTests.fail("A wait hangs.") }
      let inside = Gate()
      let (a, b, end) = (a, b, end)
      a.schedule {
        try? b.wait {
          try a.wait {
            inside.open()
            end.pass()
          }
        }
      }
      await inside.opened()
    }
  }

  fileprivate static func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(EXIT_FAILURE)
  }

  @Test func aThreadThatWaitsMeanwhileTimesOut() async {
    await #expect(processExitsWith: .success) {
      let chain = await Chain()
      let a = chain.a
      let result = await onThread { try a.wait(timeout: .milliseconds(50)) { 1 } }
      exit(result.code == .timedOut ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }

  @Test func anotherSchedulerThatWaitsMeanwhileIsServedAfterwards() async {
    await #expect(processExitsWith: .success) {
      let chain = await Chain()
      let c = SerialScheduler(name: "Gamma")
      let (a, b, end) = (chain.a, chain.b, chain.end)
      let journal = Journal<Bool>()
      c.schedule {
        let early = Result { try a.wait(timeout: .milliseconds(50)) { 1 } }
        let other = Result { try b.wait(timeout: .milliseconds(50)) { 1 } }
        end.open()
        let late = Result { try a.wait { 1 } }
        journal.write(early.code == .timedOut && other.code == .timedOut && (try? late.get()) == 1)
      }
      await journal.reaches(1)
      exit(journal.entries == [true] ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }

  @Test func waitsElsewhereGoOn() async {
    await #expect(processExitsWith: .success) {
      let chain = await Chain()
      let (a, end) = (chain.a, chain.end)
      let begun = Gate()
      async let other = onThread {
        begun.open()
        return try a.wait { 1 }
      }
      await begun.opened()
      let elsewhere = SerialScheduler(name: "elsewhere")
      let results = await onThread { try (0..<100).map { index in try elsewhere.wait { index } } }
      end.open()
      let outcome = await other
      let isFine = (try? results.get()) == Array(0..<100) && (try? outcome.get()) == 1
      exit(isFine ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }
}
#endif
