import Foundation
import Operations

/// A chain over three queues: each operation is where it belongs, and the order holds all the same.
struct Chain {
  private let network = OperationQueue()
  private let disk = OperationQueue()
  private let screen = OperationQueue()

  private let load = TextOperation("loaded")
  private let save = TextOperation("saved")
  private let show = TextOperation("shown")

  var operations: [AsyncOperation] { [load, save, show] }

  init() {
    load ==> save ==> show
    // So that a trace says where each was.
    (network.name, disk.name, screen.name) = ("network", "disk", "screen")
  }

  func run() async throws {
    screen.addOperation(show)
    disk.addOperation(save)
    network.addOperation(load)
    try await show.completed()
  }
}
