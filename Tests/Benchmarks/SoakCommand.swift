import Foundation
import Soak

/// Runs the soak for some time, and tells what came of it.
struct SoakCommand {
  /// In seconds.
  let time: Int
  /// The only one to be run, if it is to be replayed; it is then run again and again.
  let seed: UInt64?

  /// - Returns: The exit status.
  func run() async -> Int32 {
    let end = ContinuousClock.now + .seconds(time)
    var next = seed ?? UInt64.random(in: 1...1_000_000_000)
    var summary = SoakSummary()
    say("soaking, beginning with the seed \(next) …")
    repeat {
      let outcome = await SoakRunner.run(seed: next)
      summary += outcome.summary
      if !outcome.violations.isEmpty {
        print("The seed \(next) has failed:")
        for violation in outcome.violations { print("- \(violation)") }
        print("To replay it: swift run -c release Benchmarks --soak \(time) --seed \(next)")
        return 1
      }
      if summary.rounds.isMultiple(of: 100) { say("\(summary.rounds) rounds, up to the seed \(next)") }
      if seed == nil { next += 1 }
    } while ContinuousClock.now < end
    print(summary)
    return 0
  }

  /// After a crash this says which seeds it may have been.
  private func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
