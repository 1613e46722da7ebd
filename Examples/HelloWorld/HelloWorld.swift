import Foundation
import Operations

@main
struct HelloWorld {
  static func main() async throws {
    try await group()
    try await chain()
  }

  /// A group, and an observer that hears of its beginning and its end.
  private static func group() async throws {
    let group = HelloWorldOperation()
    group.addObserver(
      OperationObserver(didStart: { _ in print("group started") }, didFinish: { _ in print("group done") })
    )
    try await OperationQueue().run(group)
    print("done")
  }

  /// A chain over three queues: each operation is where it belongs, and the order holds all the same.
  private static func chain() async throws {
    let (network, disk, screen) = (OperationQueue(), OperationQueue(), OperationQueue())
    let (load, save, show) = (TextOperation("loaded"), TextOperation("saved"), TextOperation("shown"))
    load ==> save ==> show
    screen.addOperation(show)
    disk.addOperation(save)
    network.addOperation(load)
    try await show.completed()
  }
}
