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
    /// The closures to call when there are that many entries.
    var waiters: [Int: [@Sendable () -> Void]] = [:]
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
    let due = state.withLock { state in
      state.entries.append(entry)
      return state.waiters.removeValue(forKey: state.entries.count) ?? []
    }
    for waiter in due { waiter() }
  }

  /// Waits until there are at least `count` entries or the waiting task is cancelled, without holding a thread.
  public func reaches(_ count: Int) async {
    await waitUnlessCancelled { resume in
      let isReached = state.withLock { state in
        if state.entries.count < count { state.waiters[count, default: []].append(resume) }
        return state.entries.count >= count
      }
      if isReached { resume() }
    }
  }
}
