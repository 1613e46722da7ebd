import Foundation
import Operations

/// Adds to the group what is in a folder: a member for each file and each folder in it.
final class ListOperation: AsyncOperation, @unchecked Sendable {
  /// What is added at once. The rest of a large folder is for another operation.
  private static let batch = 1000

  private let path: String
  private let names: ArraySlice<String>?
  /// The group holds its members, not they the group. One that executes has it.
  private weak var group: CountOperation?

  /// - Parameters:
  ///   - names: What is left to be added; nil if the folder has not been looked into.
  ///   - isUrgent: Whether it is to come before the files that wait to be read.
  init(path: String, names: ArraySlice<String>? = nil, in group: CountOperation, isUrgent: Bool = true) {
    self.path = path
    self.names = names
    self.group = group
    super.init()
    named(path)
    queuePriority = isUrgent ? .high : .low
  }

  override func execute() {
    guard let group else { return finish() }
    // Listing comes first, so that the progress bar knows the whole. But what is listed takes memory: when much of it
    // waits, reading comes first.
    if group.hasManyWaitingFiles, queuePriority == .high {
      group.addOperation(ListOperation(path: path, names: names, in: group, isUrgent: false))
      return finish()
    }
    do {
      let names = try names ?? FileManager.default.contentsOfDirectory(atPath: path)[...]
      group.add(names.prefix(ListOperation.batch).map { path.hasSuffix("/") ? path + $0 : path + "/" + $0 })
      let rest = names.dropFirst(ListOperation.batch)
      if !rest.isEmpty { group.addOperation(ListOperation(path: path, names: rest, in: group)) }
      finish()
    } catch { finish(with: Unreadable(error)) }
  }
}
