extension Dictionary {
  /// A dictionary never gives back by itself what it once needed.
  var hasMuchRoom: Bool { capacity >= 64 && count * 8 <= capacity }

  /// To be called when something has been removed; costs a few steps each time, taken together.
  mutating func giveBackRoom() {
    guard hasMuchRoom else { return }
    var smaller = Self(minimumCapacity: count * 2)
    for (key, value) in self { smaller[key] = value }
    self = smaller
  }
}
