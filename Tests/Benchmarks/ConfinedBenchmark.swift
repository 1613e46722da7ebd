import Foundation
import Operations

/// An array that is checked at every access, and changed in place, against one that is not checked.
enum ConfinedBenchmark {
  private static let appends = 100_000

  static let confined = workload("@Confined array") { list in
    for number in 0..<appends { list.confined.append(number) }
  }

  static let plain = workload("plain array") { list in for number in 0..<appends { list.plain.append(number) } }

  private static func workload(_ name: String, _ fill: @escaping @Sendable (List) -> Void) -> Workload {
    Workload(name: name, units: appends) {
      let scheduler = SerialScheduler(name: "confined")
      let end = DispatchSemaphore(value: 0)
      scheduler.schedule {
        fill(List(scheduler))
        end.signal()
      }
      end.wait()
    }
  }

  private final class List: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    @Confined var confined: [Int] = []
    var plain: [Int] = []

    init(_ scheduler: SerialScheduler) { self.scheduler = scheduler }
  }
}
