import Operations

/// An object of the base-class form.
final class Shelf: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var items: [Int] = []
  @Confined var labels: [String: [Int]]

  init(on scheduler: SerialScheduler, labels: [String: [Int]] = [:]) {
    self.scheduler = scheduler
    self.labels = labels
  }
}

/// An object on the main scheduler.
final class Window: Schedulable, @unchecked Sendable {
  let scheduler = SerialScheduler.main
  @Confined var title = "untitled"
}
