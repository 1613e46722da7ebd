import Operations

struct SoakItem: Sendable {
  enum Place: Sendable, Equatable {
    case queue(Int)
    /// Among the events of the second scheduler.
    case scheduler
    case group(Int)
  }

  enum Way: CaseIterable, Sendable {
    case atOnce, elsewhere, twice, failing, failingElsewhere, byEvent
    /// It blocks its thread for a moment.
    case blocking
    /// Only its timeout frees what waits for it.
    case never
    /// Only cancelling it does. The plan contains the cancellation.
    case whenCancelled
    /// Finishes again after its end, whatever the cause.
    case late
    /// Before it ends it cancels the group around it.
    case cancellingGroup
  }

  enum Kind: Sendable {
    case work(Way)
    case task, map, asynchronousMap, zip, collect, flatMap, adapted, delay, plain
    /// Fails this many times before it succeeds.
    case retry(failures: Int)
    case group
  }

  enum Condition: CaseIterable, Sendable { case met, unmet, metLater, unmetLater, noFailed, noCancelled }

  enum Coming: Sendable, Equatable {
    case atFirst
    /// Added to its group by another member, while that executes.
    case broughtBy(Int)
    /// Added to its group while that is being cancelled.
    case whenGroupIsCancelled
    /// A task runs it, and is cancelled after so many ticks, if any.
    case awaited(cancelledAfter: Int?)
  }

  let index: Int
  let place: Place
  var kind: Kind
  var coming = Coming.atFirst
  /// It waits for these, and their values are handed to it.
  var inputs: [Int] = []
  var isInputOptional = false
  /// It also waits for these.
  var dependencies: [Int] = []
  /// It waits for one that is never enqueued, until that is taken back.
  var waitsForGhost = false
  /// One that is never enqueued waits for it.
  var leadsToGhost = false
  var keys: [String] = []
  var policy = ExclusivityPolicy.wait
  /// The limit and the weight of its claims, which may be extreme.
  var claim = (limit: 1, weight: 1)
  var domain = 0
  var condition: Condition?
  /// In ticks.
  var timeout: Int?
  var isFailing = false
  // Of a group:
  /// The index after its last member.
  var end = 0
  var limit = -1
  var cancelsOnFailure = false
  var isSuspended = false
  var staysOpen = false

  var isGroup: Bool { if case .group = kind { true } else { false } }
  var isPlain: Bool { if case .plain = kind { true } else { false } }

  var outer: Int? { if case .group(let group) = place { group } else { nil } }

  var hasValue: Bool { if case .delay = kind { false } else { !isPlain && !isGroup } }

  /// Whether it is added to its group while that executes.
  var isNewcomer: Bool { if case .broughtBy = coming { true } else { coming == .whenGroupIsCancelled } }

  var way: Way? { if case .work(let way) = kind { way } else { nil } }

  var isUnmet: Bool { condition == .unmet || condition == .unmetLater }

  func sharesKey(with other: Self) -> Bool {
    other.index != index && other.domain == domain && other.keys.contains(where: keys.contains)
  }

  /// Whether both cannot hold a key together.
  func excludes(_ other: Self) -> Bool {
    let (sum, isTooLarge) = claim.weight.addingReportingOverflow(other.claim.weight)
    return isTooLarge || sum > min(claim.limit, other.claim.limit)
  }

  func outcome(of inputs: [Int]) throws -> Int {
    if isFailing { throw SoakError(item: index) }
    return value(of: inputs)
  }

  /// What its work comes to, of these inputs.
  func value(of inputs: [Int]) -> Int { inputs.reduce(index &+ 1) { ($0 &* 31) &+ $1 } }
}

struct SoakError: Error, Hashable, CustomStringConvertible {
  let item: Int
  var description: String { "failure of \(item)" }
}
