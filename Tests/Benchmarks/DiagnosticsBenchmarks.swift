import Foundation
import Operations

/// What it costs to be followed by a tracer, and what it costs not to be.
enum DiagnosticsBenchmarks {
  private static let independent = 100_000

  static let all: [Benchmark] = [
    Benchmark(
      name: "untraced",
      unit: "operation of a group, \(independent) independent, while a tracer follows another",
      numerator: group(besideTracer: true),
      denominator: group(besideTracer: false),
      target: .atMost(1.1)
    ),
    Benchmark(
      name: "traced",
      unit: "operation of a group, \(independent) independent",
      numerator: tracedGroup,
      denominator: group(besideTracer: false),
      target: .none
    ),
    Benchmark(
      name: "stall-report",
      unit: "operation, \(independent) in a chain in a suspended queue, or in a group",
      numerator: report(chain: true),
      denominator: report(chain: false),
      target: .none
    ),
  ]

  private static func group(besideTracer: Bool) -> Workload {
    Workload(name: besideTracer ? "not followed" : "no tracer", units: independent) {
      let tracer = OperationTracer()
      if besideTracer { tracer.trace(AsyncBlockOperation { $0.finish() }) }
      Lifetime.run { lifetime in
        OperationQueue().addOperation(GroupOperation((0..<independent).map { Workload.asyncBlock(lifetime($0)) }))
      }
      withExtendedLifetime(tracer) {}
    }
  }

  private static let tracedGroup = Workload(name: "followed", units: independent) {
    let tracer = OperationTracer()
    Lifetime.run { lifetime in
      let group = GroupOperation((0..<independent).map { Workload.asyncBlock(lifetime($0)) })
      tracer.trace(group)
      OperationQueue().addOperation(group)
    }
    withExtendedLifetime(tracer) {}
  }

  private static func report(chain: Bool) -> Workload {
    Workload(name: chain ? "a chain" : "independent", units: independent) {
      let members = (0..<independent).map { _ in AsyncBlockOperation { $0.finish() } }
      if chain { for (before, after) in zip(members, members.dropFirst()) { before ==> after } }
      let group = GroupOperation(members)
      if group.stallReport().entries.count != independent + 1 { fatalError("Entries are missing.") }
    }
  }
}
