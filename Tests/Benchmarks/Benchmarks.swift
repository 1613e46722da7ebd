import Foundation
import Soak

@main
struct Benchmarks {
  static let usage = """
    usage: Benchmarks [--only NAME]... [--rounds N] | --list | --soak SECONDS [--seed N] | --draw FOLDER

    Compares the package with stock Foundation. Each ratio comes from pairs that are measured alternately in this run;
    run it in release mode, on a machine that has nothing else to do.

      --only NAME     measure only this one; may be repeated
      --rounds N      how many pairs a benchmark gets (default 7)
      --list          print the names and stop
      --soak SECONDS  run randomized tests with injected faults instead; exit with 1 if a promise was broken
      --seed N        replay the world of this seed, again and again; without it, another one each time
      --draw FOLDER   draw the pictures of the documentation instead, with Graphviz
    """

  static func main() async throws {
    var rounds = 7
    var only: [String] = []
    var soakTime: Int?
    var seed: UInt64?
    let benchmarks =
      GroupBenchmarks.all + GrowthBenchmarks.all + PipelineBenchmarks.all + ExclusivityBenchmarks.all
      + KeyGrowthBenchmarks.all + CrawlBenchmarks.all + TaskBenchmarks.all + WaitBenchmarks.all
      + MemberBenchmarks.all + SchedulerBenchmarks.all
    var arguments = CommandLine.arguments.dropFirst()
    while let argument = arguments.popFirst() {
      switch argument {
      case "--only": only.append(value(of: argument, &arguments))
      case "--rounds": rounds = number(of: argument, &arguments)
      case "--soak": soakTime = number(of: argument, &arguments)
      case "--seed": seed = UInt64(number(of: argument, &arguments))
      case "--draw": return try await Pictures.draw(into: URL(filePath: value(of: argument, &arguments)))
      case "--list": return print(benchmarks.map(\.name).joined(separator: "\n"))
      case "--help", "-h": return print(usage)
      default: fail("unknown argument \(argument)")
      }
    }
    if let soakTime { exit(await soak(seconds: soakTime, seed: seed)) }
    for name in only where !benchmarks.contains(where: { $0.name == name }) { fail("no benchmark is named \(name)") }
    let chosen = only.isEmpty ? benchmarks : benchmarks.filter { only.contains($0.name) }
    // Not on the main thread, because some workloads use the main actor.
    let rows = await onNewThread { [rounds] in
      chosen.map { benchmark in
        say("measuring \(benchmark.name) …")
        return benchmark.measure(rounds: rounds)
      }
    }
    print(Report.table(rows))
  }

  private static func number(of option: String, _ arguments: inout ArraySlice<String>) -> Int {
    guard let number = Int(value(of: option, &arguments)), number > 0 else {
      fail("\(option) takes a whole number from 1 up")
    }
    return number
  }

  private static func value(of option: String, _ arguments: inout ArraySlice<String>) -> String {
    guard let value = arguments.popFirst() else { fail("\(option) needs a value") }
    return value
  }

  private static func fail(_ message: String) -> Never {
    say("Benchmarks: \(message)\n\n\(usage)")
    exit(2)
  }

  /// Writes to the standard error. After a crash of a soak, it shows which seeds may have caused it.
  private static func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

  /// Runs the soak for some time, and prints the result.
  ///
  /// - Parameter seed: The only seed to run, again and again, to replay it.
  /// - Returns: The exit status.
  private static func soak(seconds: Int, seed: UInt64?) async -> Int32 {
    let end = ContinuousClock.now + .seconds(seconds)
    var next = seed ?? UInt64.random(in: 1...1_000_000_000)
    var (rounds, operations) = (0, 0)
    say("soaking, beginning with the seed \(next) …")
    repeat {
      let outcome = await SoakRunner.run(seed: next)
      rounds += 1
      operations += outcome.operations
      if !outcome.violations.isEmpty {
        print("The seed \(next) has failed:")
        for violation in outcome.violations { print("- \(violation)") }
        print("To replay it: swift run -c release Benchmarks --soak \(seconds) --seed \(next)")
        return 1
      }
      if rounds.isMultiple(of: 100) { say("\(rounds) rounds, up to the seed \(next)") }
      if seed == nil { next += 1 }
    } while ContinuousClock.now < end
    print("\(rounds) rounds, \(operations) operations")
    return 0
  }
}
