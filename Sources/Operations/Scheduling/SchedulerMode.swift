import Synchronization

/// Whether running an event takes more than running it. Read for every event, so it costs next to nothing.
struct SchedulerMode: ~Copyable, Sendable {
  struct Options: OptionSet {
    let rawValue: UInt8
    static let discarding = Self(rawValue: 1)
    static let instrumented = Self(rawValue: 2)
  }

  private let options = Atomic<UInt8>(0)

  var isPlain: Bool { options.load(ordering: .relaxed) == 0 }
  var isDiscarding: Bool { Options(rawValue: options.load(ordering: .relaxed)).contains(.discarding) }

  func insert(_ option: Options) { options.bitwiseOr(option.rawValue, ordering: .relaxed) }
  func remove(_ option: Options) { options.bitwiseAnd(~option.rawValue, ordering: .relaxed) }
}
