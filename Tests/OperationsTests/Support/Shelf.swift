import Operations

final class Shelf: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var items: [Int] = []
  @Confined var labels: [String: [Int]] = [:]

  init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
}
