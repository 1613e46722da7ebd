/// The tickets of those who want a key, in the order in which they get it.
///
/// Whoever leaves from the middle keeps its slot, until that has come to the front: so leaving costs the same however
/// long the line is.
struct ExclusivityLine {
  /// In order. The first has not left; of the others some may have.
  var slots: ArraySlice<Int> { tickets[head...] }

  private var tickets: [Int] = []
  private var head = 0
  /// How many have not left.
  private var count = 0

  var isEmpty: Bool { count == 0 }
  var first: Int? { slots.first }

  /// Adds a ticket, at an index of ``slots`` or the end.
  ///
  /// - Returns: Whether it is the first.
  mutating func add(_ ticket: Int, at index: Int?) -> Bool {
    tickets.insert(ticket, at: index ?? tickets.endIndex)
    count += 1
    return tickets[head] == ticket
  }

  /// - Returns: Who has become the first.
  mutating func remove(_ ticket: Int, whereOthers hasLeft: (Int) -> Bool) -> Int? {
    let wasFirst = ticket == first
    count -= 1
    if isEmpty { return nil }
    if wasFirst {
      repeat { head += 1 } while hasLeft(tickets[head])
    }
    // More than half of it is of no use: tidying up costs each of those who have left a step or two.
    if tickets.count >= 64, tickets.count > count * 2 {
      tickets = slots.filter { $0 != ticket && !hasLeft($0) }
      head = 0
    }
    return wasFirst ? tickets[head] : nil
  }
}
