/// What an error looks like: its type and its words. Errors have no identity, so this is as close as one gets.
///
/// Putting an error into words takes microseconds: whoever compares many with many does it once for each.
struct ErrorLook: Hashable {
  private let type: ObjectIdentifier
  private let words: String

  init(_ error: any Error) {
    type = ObjectIdentifier(Swift.type(of: error))
    words = String(reflecting: error)
  }
}

/// Whether two errors look the same: same type, same words.
func seemsSame(_ left: any Error, _ right: any Error) -> Bool {
  type(of: left) == type(of: right) && String(reflecting: left) == String(reflecting: right)
}
