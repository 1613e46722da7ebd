import Foundation
import Operations

/// An array that is checked at every access, and changed in place, against one that is not checked.
enum ConfinedBenchmark {
  private static let appends = 100_000

  static let confined = Workload(name: "@Confined array", units: appends) {
    let scheduler = SerialScheduler(name: "confined")
    let end = DispatchSemaphore(value: 0)
    scheduler.schedule {
      let list = List(scheduler)
      for number in 0..<appends { list.confined.append(number) }
      end.signal()
    }
    end.wait()
  }

  static let plain = Workload(name: "plain array", units: appends) {
    let scheduler = SerialScheduler(name: "confined")
    let end = DispatchSemaphore(value: 0)
    scheduler.schedule {
      let list = List(scheduler)
      for number in 0..<appends { list.plain.append(number) }
      end.signal()
    }
    end.wait()
  }

  private final class List: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    @Confined var confined: [Int] = []
    var plain: [Int] = []

    init(_ scheduler: SerialScheduler) { self.scheduler = scheduler }
  }
}
