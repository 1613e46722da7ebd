import ExampleSupport
import Operations

@main
@MainActor
struct Dialogs {
  private static let usage = """
    Usage: Dialogs [wait|replace|drop]...

    Starts an app without a network: four loads fail, and each asks whether to
    try again. The dialogs exclude each other according to the policy. Answer y
    or n; the end of the input means n. Without arguments, shows all policies.

    Exit status: 0, 1 if the output cannot be written, 2 if the arguments are
    wrong.
    """

  private static let policies: [ExclusivityPolicy] = [.wait, .replace, .drop]

  static func main() async {
    await Command.run(usage: usage) { arguments in
      let named = try arguments.takeAll().map(policy)
      await launch(with: named.isEmpty ? policies : named)
      return 0
    }
  }

  private static func policy(named name: String) throws -> ExclusivityPolicy {
    guard let policy = policies.first(where: { "\($0)" == name }) else {
      throw UsageError("There is no policy “\(name)”: give wait, replace or drop.")
    }
    return policy
  }

  private static func launch(with policies: [ExclusivityPolicy]) async {
    let terminal = Terminal()
    let launches = policies.map { Launch(policy: $0, on: terminal) }
    for launch in launches {
      terminal.write("== \(launch.policy)")
      await launch.run()
      terminal.write("")
    }
    for line in Table(of: launches).lines { terminal.write(line) }
  }
}
