/// The type and the description of an error, for comparing errors, which have no identity.
///
/// Describing an error takes microseconds. To compare many errors, create one value for each.
struct ErrorLook: Hashable {
  private let type: ObjectIdentifier
  private let words: String

  init(_ error: any Error) {
    type = ObjectIdentifier(Swift.type(of: error))
    words = String(reflecting: error)
  }
}

/// Whether two errors have the same type and the same description.
func seemsSame(_ left: any Error, _ right: any Error) -> Bool {
  type(of: left) == type(of: right) && String(reflecting: left) == String(reflecting: right)
}
