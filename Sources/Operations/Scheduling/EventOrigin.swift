/// Where in the program an event was scheduled, or a property declared.
public struct EventOrigin: Sendable, CustomStringConvertible {
  /// Module and file.
  public let file: StaticString
  /// The line in it; the first is 1.
  public let line: UInt

  /// The place where this is written.
  public init(file: StaticString = #fileID, line: UInt = #line) {
    self.file = file
    self.line = line
  }

  public var description: String { "\(file):\(line)" }
}
