import Foundation
import Operations

/// Prints a line.
final class PrintOperation: AsyncOperation, @unchecked Sendable {
  private let line: String

  init(_ line: String) {
    self.line = line
    super.init()
  }

  override func execute() {
    print(line)
    finish()
  }
}

@main
struct HelloWorld {
  static func main() async throws {
    // A group runs its members as one operation. `==>` adds a dependency: the second member starts when the first has
    // finished.
    let group = GroupOperation("HelloWorld") {
      PrintOperation("Hello") ==> PrintOperation("World")
    }
    group.addObserver(
      OperationObserver(didStart: { _ in print("group started") }, didFinish: { _ in print("group done") })
    )
    try await OperationQueue().run(group)
    print("done")

    // Dependencies hold across queues.
    let (network, disk, screen) = (OperationQueue(), OperationQueue(), OperationQueue())
    let (load, save, show) = (PrintOperation("loaded"), PrintOperation("saved"), PrintOperation("shown"))
    load ==> save ==> show
    screen.addOperation(show)
    disk.addOperation(save)
    network.addOperation(load)
    try await show.completed()

    if fflush(nil) != 0 {
      unsafe perror("Standard output could not be written")
      exit(1)
    }
  }
}
