import Synchronization

/// Whether running an event takes more than running it. Read for every event, so it costs next to nothing.
struct SchedulerMode: ~Copyable, Sendable {
  struct Options: OptionSet {
    let rawValue: UInt8
    static let discarding = Self(rawValue: 1)
    static let instrumented = Self(rawValue: 2)
    static let suspended = Self(rawValue: 4)
  }

  private let options = Atomic<UInt8>(0)

  /// Whether nothing is measured or watched, and nothing discarded.
  var isPlain: Bool { current.isDisjoint(with: [.discarding, .instrumented]) }
  var isDiscarding: Bool { current.contains(.discarding) }
  var isSuspended: Bool { current.contains(.suspended) }

  private var current: Options { Options(rawValue: options.load(ordering: .relaxed)) }

  func insert(_ option: Options) { options.bitwiseOr(option.rawValue, ordering: .relaxed) }
  func remove(_ option: Options) { options.bitwiseAnd(~option.rawValue, ordering: .relaxed) }
}
