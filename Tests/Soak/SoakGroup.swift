import Foundation
import Operations

/// A group that wants to hear of the end of each member.
final class SoakGroup: GroupOperation, @unchecked Sendable {
  private let log: SoakLog
  private let isHearing = Locked(false)

  init(_ log: SoakLog) {
    self.log = log
    super.init(nil) {}
  }

  override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
    if !isHearing.withLock({ $0.exchange(true) }) { log.report("\(name ?? "") heard of two members at once") }
    if let index = member.name.flatMap(Int.init) { log.write(.accounted(index)) }
    isHearing.withLock { $0 = false }
    return errors
  }
}

extension Bool {
  /// - Returns: Whether it was another.
  fileprivate mutating func exchange(_ new: Bool) -> Bool {
    defer { self = new }
    return self != new
  }
}
