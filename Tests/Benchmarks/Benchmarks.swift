import Foundation

@main
struct Benchmarks {
  static let usage = """
    usage: Benchmarks [--only NAME]... [--rounds N] [--json] [--list]

    Compares the package with stock Foundation. Each ratio comes from pairs that are measured alternately in this run;
    run it in release mode, on a machine that has nothing else to do.

      --only NAME   measure only this one; may be repeated
      --rounds N    how many pairs a benchmark gets (default 7)
      --json        print JSON instead of a table
      --list        print the names and stop
    """

  static func main() throws {
    var rounds = 7
    var only: [String] = []
    var isJSON = false
    let benchmarks =
      GroupBenchmarks.all + PipelineBenchmarks.all + ExclusivityBenchmarks.all + SchedulerBenchmarks.all
      + DiagnosticsBenchmarks.all
    var arguments = CommandLine.arguments.dropFirst()
    while let argument = arguments.popFirst() {
      switch argument {
      case "--only": only.append(value(of: argument, &arguments))
      case "--rounds":
        guard let number = Int(value(of: argument, &arguments)), number > 0 else {
          fail("--rounds takes a whole number from 1 up")
        }
        rounds = number
      case "--json": isJSON = true
      case "--list":
        for benchmark in benchmarks { print(benchmark.name) }
        return
      case "--help", "-h":
        print(usage)
        return
      default: fail("unknown argument \(argument)")
      }
    }
    for name in only where !benchmarks.contains(where: { $0.name == name }) { fail("no benchmark is named \(name)") }
    let chosen = only.isEmpty ? benchmarks : benchmarks.filter { only.contains($0.name) }
    let measurements = chosen.map { benchmark in
      FileHandle.standardError.write(Data("measuring \(benchmark.name) …\n".utf8))
      return benchmark.measure(rounds: rounds)
    }
    print(isJSON ? try Report.json(measurements) : Report.table(measurements))
  }

  private static func value(of option: String, _ arguments: inout ArraySlice<String>) -> String {
    guard let value = arguments.popFirst() else { fail("\(option) needs a value") }
    return value
  }

  private static func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data("Benchmarks: \(message)\n\n\(usage)\n".utf8))
    exit(2)
  }
}
