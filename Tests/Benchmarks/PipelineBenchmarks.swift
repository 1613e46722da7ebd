import Foundation
import Operations

/// Values that pass through stages, and an awaited operation, compared with the same work without the package.
enum PipelineBenchmarks {
  private static let stages = 4
  private static let items = 25_000
  private static let units = items * stages
  /// How many items stock operations are given at once. They become slower with each waiting item.
  private static let batch = 25
  private static let values = 20_000

  private static let unit = "stage of an item, \(items) items in \(stages) stages"
  private static let awaited = "value awaited, one at a time"

  static let all: [Benchmark] = [
    Benchmark("pipeline", of: unit, stockPipeline, over: pipeline, .atLeast(1, aim: 2)),
    Benchmark("pipeline-tasks", of: unit, pipeline, over: taskPipeline),
    Benchmark("run", of: awaited, runs, over: .tasks(values)),
    Benchmark("run-by-hand", of: awaited, runs, over: continuations, .atMost(1.5)),
  ]

  private static let pipeline = Workload(name: "pass, GroupOperation", units: units) {
    Lifetime.run { lifetime in
      var operations: [Operation] = []
      operations.reserveCapacity(units)
      for item in 0..<items {
        var last: ResultOperation<Int> = ResultOperation { [lifetime = lifetime(item)] in work(item, lifetime) }
        operations.append(last)
        for stage in 1..<stages {
          last = last.map { [lifetime = lifetime(item + stage)] value in work(value, lifetime) }
          operations.append(last)
        }
      }
      OperationQueue().addOperation(GroupOperation(operations))
    }
  }

  /// The same work without the package: boxes for the values, and operations in between that carry them.
  private static let stockPipeline = Workload(name: "BlockOperation and adapters, OperationQueue", units: units) {
    let queue = OperationQueue()
    for start in stride(from: 0, to: items, by: batch) {
      Lifetime.run { lifetime in
        var operations: [Operation] = []
        for item in start..<min(start + batch, items) {
          var (box, last) = stage(item, lifetime(item))
          operations.append(last)
          for index in 1..<stages {
            let input = Box<Int>()
            let adapter = BlockOperation { [box] in input.value = box.value }
            adapter.addDependency(last)
            (box, last) = stage(input, after: adapter, lifetime(item + index))
            operations += [adapter, last]
          }
        }
        queue.addOperations(operations, waitUntilFinished: false)
      }
    }
  }

  private static func stage(_ item: Int, _ lifetime: Lifetime) -> (Box<Int>, Operation) {
    let output = Box<Int>()
    return (output, BlockOperation { output.value = work(item, lifetime) })
  }

  private static func stage(_ input: Box<Int>, after adapter: Operation, _ lifetime: Lifetime) -> (Box<Int>, Operation)
  {
    let output = Box<Int>()
    let operation = BlockOperation { output.value = input.value.map { work($0, lifetime) } }
    operation.addDependency(adapter)
    return (output, operation)
  }

  private static let taskPipeline = Workload.awaiting("TaskGroup", units: units) {
    await withTaskGroup(of: Int.self) { group in
      for item in 0..<items {
        group.addTask {
          var value = work(item, nil)
          for _ in 1..<stages { value = await stage(value) }
          return value
        }
      }
      for await _ in group {}
    }
  }

  @concurrent private static func stage(_ value: Int) async -> Int { work(value, nil) }

  private static func work(_ value: Int, _ lifetime: Lifetime?) -> Int { withExtendedLifetime(lifetime) { value &+ 1 } }

  // MARK: Awaited values

  private static let runs = Workload.awaiting("queue.run(ResultOperation)", units: values) {
    let queue = OperationQueue()
    for index in 0..<values { _ = try? await queue.run(ResultOperation { index }) }
  }

  private static let continuations = Workload.awaiting("BlockOperation and a continuation", units: values) {
    let queue = OperationQueue()
    for index in 0..<values {
      _ = await withCheckedContinuation { continuation in
        queue.addOperation(BlockOperation { continuation.resume(returning: index) })
      }
    }
  }
}

/// Where a stage leaves its value for the next one, which starts after it.
private final class Box<Value>: @unchecked Sendable { var value: Value? }
