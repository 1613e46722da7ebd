import Operations

/// An object of the base-class form.
final class Shelf: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var items: [Int] = []
  @Confined var labels: [String: [Int]] = [:]

  init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
}
