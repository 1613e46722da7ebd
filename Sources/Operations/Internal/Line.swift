/// First in, first out, at a constant cost: what waits in it is moved once at most, taken over all.
struct Line<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { head == elements.count }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    // Moved out, not copied: counting the reference would fetch the object into the cache, mostly under a lock.
    var element: Element?
    swap(&element, &elements[head])
    head += 1
    if head == elements.count || (head >= 64 && head * 2 >= elements.count) {
      // Half of it is empty: moving the rest to the front costs each element one move.
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  mutating func popLast() -> Element? {
    guard head < elements.count else { return nil }
    return elements.removeLast()
  }

  /// Costs a step for each that is in it.
  mutating func removeAll(where isGone: (Element) -> Bool) {
    elements = elements[head...].filter { $0.map(isGone) == false }
    head = 0
  }
}
