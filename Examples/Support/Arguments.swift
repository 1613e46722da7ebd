import Foundation

/// The arguments of a program, taken one at a time from the front.
package struct Arguments {
  private var rest: ArraySlice<String>

  package init(_ arguments: some Sequence<String>) { rest = ArraySlice(arguments) }

  /// Whether `--help` or `-h` is among the options.
  package var wantsHelp: Bool { rest.prefix { $0 != "--" }.contains { ["--help", "-h"].contains($0) } }

  /// Takes the next argument.
  package mutating func next() -> String? { rest.popFirst() }

  /// Takes all remaining arguments.
  package mutating func takeAll() -> [String] {
    defer { rest = [] }
    return Array(rest)
  }

  /// Takes the value of an option.
  ///
  /// - Parameter description: The kind of value, for example "a number".
  package mutating func value(of option: String, _ description: String) throws -> String {
    guard let value = next(), !value.isEmpty else { throw UsageError("The option \(option) needs \(description).") }
    return value
  }

  /// Takes the value of an option that is a whole number.
  package mutating func number(of option: String, in range: ClosedRange<Int>) throws -> Int {
    let text = try value(of: option, "a number")
    guard let number = Int(text), range.contains(number) else {
      let limits =
        range.upperBound == .max ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
      throw UsageError("“\(text)” is not a valid value of \(option): give a whole number, \(limits).")
    }
    return number
  }

  /// Checks that no arguments are left.
  package func end() throws { if let argument = rest.first { throw UsageError(unexpected: argument) } }
}

/// The arguments name a file or a page that cannot be used.
package struct InputError: LocalizedError {
  package let errorDescription: String?

  /// - Parameter sentence: What cannot be used, and why.
  package init(_ sentence: String) { errorDescription = sentence }
}

/// A program was called with wrong arguments.
package struct UsageError: LocalizedError {
  package let errorDescription: String?

  /// - Parameter sentence: What is wrong, and what to do.
  package init(_ sentence: String) { errorDescription = sentence }

  package init(unexpected argument: String) {
    self.init(
      argument.hasPrefix("-") ? "There is no option “\(argument)”." : "The argument “\(argument)” is not expected."
    )
  }
}
