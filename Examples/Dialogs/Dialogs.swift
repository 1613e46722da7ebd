import Foundation
import Operations

@main
@MainActor
struct Dialogs {
  private static let help = """
    Usage: Dialogs [wait|replace|drop]...

    Starts an app that finds no network: whatever it loads fails, and wants a dialog. How these exclude each other is up
    to the policy. Answer y or n; the end of the input means n. Without arguments all policies have their turn.

    Exit status: 2 if the arguments are wrong.
    """

  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    if arguments.contains(where: { ["--help", "-h"].contains($0) }) { return print(help) }
    do { await launch(with: try arguments.isEmpty ? ExclusivityPolicy.allCases : arguments.map(policy)) } catch {
      FileHandle.standardError.write(Data((error.localizedDescription + "\n").utf8))
      exit(2)
    }
  }

  private static func policy(named name: String) throws -> ExclusivityPolicy {
    guard let policy = ExclusivityPolicy.allCases.first(where: { "\($0)" == name }) else {
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
