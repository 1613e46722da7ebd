/// Who holds which keys, and who waits for them in which order: a value, without effects.
///
/// All who want a key stand in one line for it, in the order of asking, and whoever is first in the lines of all its
/// keys holds them. They join all their lines at once, so nobody waits in a circle, and everybody gets to the front.
///
/// What runs inside a holder stands in a line of its own for that key, *within* the holder: so it is let in, and its
/// siblings exclude each other. The holder keeps its place until those have left, too. And as a holder does not leave
/// before what runs inside it has, that goes, for any other key, before those who wait for the holder.
///
/// Those who hold their keys may still wait for a slot of their queue: they *begin* when they have both. What runs
/// inside an operation that has such a slot goes before them, too, and gets what they hold. Nobody waits for ever: all
/// waits that close a circle come from somebody inside of something, who either goes before others, or sends them to
/// the end of their lines, or is turned away.
struct ExclusivityTable<Claimant> {
  /// In the order of asking.
  typealias Ticket = Int

  /// Which line.
  struct Place: Hashable {
    let key: ExclusivityKey
    /// Within which holder of the key. Nil outside of all.
    var holder: Ticket?
  }

  /// Somebody who wants keys.
  struct Applicant {
    let claimant: Claimant
    var places: [Place]
    /// What it runs inside of, from the innermost outwards.
    var outer: [Ticket] = []
    /// Where it has to wait for a slot before it can begin, if slots are limited there.
    var slots: ObjectIdentifier?
    /// Where what it runs inside of has slots.
    var taken: [ObjectIdentifier] = []
    /// It begins with ``begin(_:)``: until then it can do without what it holds.
    var isPatient = false
    /// What stands in its way will go, whoever waits for whom.
    var acceptsCircle = false
  }

  struct Entry {
    let applicant: Applicant
    var hasBegun: Bool
    /// In how many lines somebody is before it.
    var behind = 0
    /// How many places within it are taken.
    var inside = 0
    /// It would have left if nobody were inside.
    var isLeaving = false

    var claimant: Claimant { applicant.claimant }
    var places: [Place] { applicant.places }
    var isGranted: Bool { behind == 0 }

    init(_ applicant: Applicant) {
      self.applicant = applicant
      hasBegun = !applicant.isPatient
    }
  }

  enum Joining {
    case granted(Ticket)
    case waiting(Ticket)
    /// It would wait for a holder of this key, who waits for what it runs inside of: for ever.
    case circle(key: ExclusivityKey, holder: Claimant)
  }

  /// What somebody's coming means for others.
  struct Moves {
    /// They wait again, or at another place, with this ticket.
    var revoked: [(claimant: Claimant, ticket: Ticket)] = []
    /// They hold all their keys now.
    var granted: [Claimant] = []
  }

  private(set) var entries: [Ticket: Entry] = [:]
  private(set) var lines: [Place: ExclusivityLine] = [:]
  /// Those who have to wait for a slot, by where they do.
  private(set) var unbegun: [ObjectIdentifier: Set<Ticket>] = [:]
  private var nextTicket = 0

  // MARK: Coming

  /// Where a claimant would stand for these keys: within the innermost of those around it that hold them.
  ///
  /// - Parameter outer: The tickets of the operations around it, from the innermost outwards.
  func places(for keys: [ExclusivityKey], within outer: [Ticket]) -> [Place] {
    keys.map { key in
      var place = Place(key: key)
      while let first = first(at: place), outer.contains(first), entries[first]?.isGranted == true {
        place.holder = first
      }
      return place
    }
  }

  /// Takes a place in all of its lines: the last, unless somebody there waits for what the applicant runs inside of.
  mutating func join(_ applicant: Applicant) -> (Joining, Moves) {
    var moves = Moves()
    var (others, slow) = waiting(for: applicant, throughSlots: true)
    if !applicant.acceptsCircle {
      let certain = slow.isEmpty ? others : waiting(for: applicant, throughSlots: false).all
      if let circle = circle(through: applicant, among: certain) { return (circle, moves) }
    }
    if applicant.places.contains(where: { holder(at: $0).map(others.contains) == true }) {
      // Its holder waits for somebody who waits for a slot, and need not.
      for ticket in slow where entries[ticket]?.hasBegun == false { postpone(ticket, &moves) }
      others = waiting(for: applicant, throughSlots: true).all
    }
    let ticket = add(applicant, before: others, &moves)
    return (entries[ticket]?.isGranted == true ? .granted(ticket) : .waiting(ticket), moves)
  }

  private func circle(through applicant: Applicant, among waiting: Set<Ticket>) -> Joining? {
    if waiting.isEmpty { return nil }
    for place in applicant.places {
      guard let first = first(at: place), waiting.contains(first), let entry = entries[first] else { continue }
      if entry.isGranted { return .circle(key: place.key, holder: entry.claimant) }
    }
    return nil
  }

  /// Who holds the key, and keeps it.
  private func holder(at place: Place) -> Ticket? { first(at: place).flatMap { canBePassed($0) ? nil : $0 } }

  /// A new entry, in all of its lines: before those of `others` who can be passed, else at the end.
  private mutating func add(_ applicant: Applicant, before others: Set<Ticket>, _ moves: inout Moves) -> Ticket {
    let ticket = nextTicket
    nextTicket += 1
    entries[ticket] = Entry(applicant)
    if let slots = applicant.slots { unbegun[slots, default: []].insert(ticket) }
    for place in applicant.places {
      if let holder = place.holder { entries[holder]?.inside += 1 }
      let first = first(at: place)
      let index =
        isAnyone(of: others, at: place)
        ? lines[place]?.slots.firstIndex { others.contains($0) && canBePassed($0) } : nil
      if lines[place, default: ExclusivityLine()].add(ticket, at: index) {
        if let first { giveWay(first, &moves) }
      } else {
        entries[ticket]?.behind += 1
      }
    }
    return ticket
  }

  /// Mostly they are few, and the line is long.
  private func isAnyone(of others: Set<Ticket>, at place: Place) -> Bool {
    guard let line = lines[place] else { return false }
    return others.count >= line.slots.count || others.contains { entries[$0]?.places.contains(place) == true }
  }

  private func canBePassed(_ ticket: Ticket) -> Bool {
    entries[ticket].map { !$0.isGranted || !$0.hasBegun } ?? false
  }

  /// Somebody has come before the first of a line.
  private mutating func giveWay(_ ticket: Ticket, _ moves: inout Moves) {
    guard let entry = entries[ticket] else { return }
    if entry.isGranted { moves.revoked.append((entry.claimant, ticket)) }
    entries[ticket]?.behind += 1
  }

  /// Begins anew in all of its lines.
  private mutating func postpone(_ old: Ticket, _ moves: inout Moves) {
    guard let entry = entries[old] else { return }
    let others = waiting(for: entry.applicant, throughSlots: true).all
    let new = add(entry.applicant, before: others, &moves)
    moves.revoked.append((entry.claimant, new))
    moves.granted += leave(old)
  }

  // MARK: Who waits for whom

  /// All who wait, directly or not, for what the applicant runs inside of to leave; and those of them who wait for a
  /// slot.
  ///
  /// - Parameter throughSlots: Whether to wait for a slot, where somebody has one who waits, counts.
  private func waiting(for applicant: Applicant, throughSlots: Bool) -> (all: Set<Ticket>, slow: Set<Ticket>) {
    if applicant.outer.isEmpty, applicant.taken.isEmpty { return ([], []) }
    var result = Set(applicant.outer)
    var slow: Set<Ticket> = []
    var linesToVisit: Set<Place> = []
    var toVisit = applicant.outer
    func visit(slotsAt places: [ObjectIdentifier]) {
      for place in throughSlots ? places : [] {
        for ticket in unbegun[place] ?? [] where result.insert(ticket).inserted {
          slow.insert(ticket)
          toVisit.append(ticket)
        }
      }
    }
    visit(slotsAt: applicant.taken)
    // What is known of each line: from here on, everybody waits.
    var known: [Place: Int] = [:]
    while true {
      while let ticket = toVisit.popLast() {
        guard let entry = entries[ticket] else { continue }
        linesToVisit.formUnion(entry.places)
        // Those wait for it, for it is inside them; and others for their slots.
        for outer in entry.applicant.outer where result.insert(outer).inserted { toVisit.append(outer) }
        visit(slotsAt: entry.applicant.taken)
      }
      guard let place = linesToVisit.popFirst() else { break }
      guard let line = lines[place] else { continue }
      let end = known[place] ?? line.slots.endIndex
      guard let first = line.slots[..<end].firstIndex(where: result.contains) else { continue }
      known[place] = first
      for ticket in line.slots[first..<end] where entries[ticket] != nil && result.insert(ticket).inserted {
        toVisit.append(ticket)
      }
    }
    return (result.subtracting(applicant.outer), slow)
  }

  // MARK: Beginning

  /// - Returns: Whether it has its keys, and keeps them from now on.
  mutating func begin(_ ticket: Ticket) -> Bool {
    guard let entry = entries[ticket], entry.isGranted else { return false }
    entries[ticket]?.hasBegun = true
    waitNoMoreForSlot(ticket, entry)
    return true
  }

  /// Somebody has got a slot, and not its keys any more: it waits with the slot, and so goes before those who wait for
  /// that.
  ///
  /// - Returns: The ticket it has from now on.
  mutating func waitInSlot(_ old: Ticket) -> (Ticket, Moves) {
    guard let entry = entries[old] else { return (old, Moves()) }
    waitNoMoreForSlot(old, entry)
    var applicant = entry.applicant
    applicant.taken += applicant.slots.map { [$0] } ?? []
    applicant.slots = nil
    applicant.acceptsCircle = true
    var (joining, moves) = join(applicant)
    moves.granted += leave(old)
    switch joining {
    case .granted(let new), .waiting(let new): return (new, moves)
    case .circle: return (old, moves)
    }
  }

  private mutating func waitNoMoreForSlot(_ ticket: Ticket, _ entry: Entry) {
    guard let slots = entry.applicant.slots else { return }
    unbegun[slots]?.remove(ticket)
    if unbegun[slots]?.isEmpty == true { unbegun[slots] = nil }
  }

  // MARK: Going

  /// Gives the places up.
  ///
  /// - Returns: Those who hold all their keys now.
  mutating func leave(_ ticket: Ticket) -> [Claimant] {
    var granted: [Claimant] = []
    var leaving = [ticket]
    while let ticket = leaving.popLast() {
      guard let entry = entries[ticket] else { continue }
      if entry.inside > 0 {
        entries[ticket]?.isLeaving = true
        continue
      }
      entries[ticket] = nil
      waitNoMoreForSlot(ticket, entry)
      for place in entry.places {
        if let holder = place.holder, let outer = leaveInside(of: holder) { leaving.append(outer) }
        guard let next = advance(place, after: ticket) else { continue }
        entries[next]?.behind -= 1
        if let entry = entries[next], entry.isGranted { granted.append(entry.claimant) }
      }
    }
    entries.giveBackRoom()
    lines.giveBackRoom()
    return granted
  }

  /// - Returns: The holder, if it can leave now.
  private mutating func leaveInside(of holder: Ticket) -> Ticket? {
    entries[holder]?.inside -= 1
    guard let entry = entries[holder], entry.isLeaving, entry.inside == 0 else { return nil }
    return holder
  }

  /// - Returns: Who has become the first of the line.
  private mutating func advance(_ place: Place, after ticket: Ticket) -> Ticket? {
    guard let index = lines.index(forKey: place) else { return nil }
    let next = lines.values[index].remove(ticket) { [entries] in entries[$0] == nil }
    if lines.values[index].isEmpty { lines.remove(at: index) }
    return next
  }
}

extension ExclusivityTable.Joining: Equatable where Claimant: Equatable {}
