import Soak
import Testing

/// A randomized test of the whole package, with injected faults. See the target Soak.
///
/// `SOAK_SEED=17 swift test --filter Soak` replays a seed; `swift run -c release Benchmarks --soak 60` tries many.
@Suite(.timeLimit(.minutes(5)))
struct SoakTests {
  /// One after the other, because each seed uses many threads.
  @Test func everyPromiseIsKept() async {
    for seed in SeededGenerator.seeds(from: "SOAK_SEED") {
      // All other tests are running at the same time.
      let outcome = await SoakRunner.run(seed: seed, patience: .seconds(120))
      #expect(
        outcome.violations.isEmpty,
        "SOAK_SEED=\(seed) swift test --filter Soak\n\(outcome.violations.joined(separator: "\n"))"
      )
    }
  }
}
