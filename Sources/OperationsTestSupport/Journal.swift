import Operations

/// A record of events, in order, from any thread.
///
/// ```swift
/// let journal = Journal<String>()
/// operation.addObserver(OperationObserver(didFinish: { _ in journal.write("finished") }))
/// queue.addOperation(operation)
/// await journal.reaches(1)
/// #expect(journal.entries == ["finished"])
/// ```
public final class Journal<Entry: Sendable>: Sendable {
  private struct State {
    var entries: [Entry] = []
    /// The gates to open when there are that many entries.
    var gates: [Int: Gate] = [:]
  }

  private let state = Locked(State())

  /// Creates an empty journal.
  public init() {}

  /// The entries that have been written so far, in order.
  public var entries: [Entry] { state.withLock { $0.entries } }

  /// The number of entries.
  public var count: Int { state.withLock { $0.entries.count } }

  /// Adds an entry. Resumes, on this thread, the tasks that wait for this number of entries.
  public func write(_ entry: Entry) {
    let gate = state.withLock { state in
      state.entries.append(entry)
      return state.gates.removeValue(forKey: state.entries.count)
    }
    gate?.open()
  }

  /// Waits until there are at least `count` entries or the waiting task is cancelled, without holding a thread.
  public func reaches(_ count: Int) async {
    let gate = state.withLock { $0.entries.count < count ? $0.gates.gate(at: count) : nil }
    await gate?.opened()
  }
}
