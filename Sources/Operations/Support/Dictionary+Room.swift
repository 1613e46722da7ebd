extension Dictionary {
  /// Whether most of the capacity is unused. A dictionary never shrinks by itself.
  var hasMuchRoom: Bool { capacity >= 64 && count * 8 <= capacity }

  /// Shrinks the storage after a removal if most of it is unused. Amortized O(1).
  mutating func giveBackRoom() {
    guard hasMuchRoom else { return }
    var smaller = Self(minimumCapacity: count * 2)
    for (key, value) in self { smaller[key] = value }
    self = smaller
  }
}
