/// A queue of elements in the order of their deadlines, and then of the creation of their places. It is a binary heap
/// of places, separate from the elements. Adding and removing cost O(log n). Removing an element leaves a vacant place
/// in the heap, which is rebuilt when more than half of its places are vacant.
package struct DeadlineQueue<Deadline: Comparable & Sendable, Element> {
  package struct Place: Sendable, Comparable {
    package let deadline: Deadline
    let number: Int

    package static func < (left: Self, right: Self) -> Bool {
      (left.deadline, left.number) < (right.deadline, right.number)
    }
  }

  /// The heap. Its first place is never vacant.
  private var heap: [Place] = []
  private var elements: [Int: Element] = [:]
  package private(set) var numbersSoFar = 0

  package init() {}

  package var count: Int { elements.count }
  package var earliest: Deadline? { heap.first?.deadline }
  package var first: Element? { heap.first.flatMap { elements[$0.number] } }

  package mutating func place(at deadline: Deadline) -> Place {
    numbersSoFar += 1
    return Place(deadline: deadline, number: numbersSoFar)
  }

  package mutating func add(_ element: Element, at place: Place) {
    elements[place.number] = element
    heap.append(place)
    siftUp()
  }

  package mutating func add(_ element: Element, at deadline: Deadline) -> Place {
    let place = place(at: deadline)
    add(element, at: place)
    return place
  }

  package mutating func remove(_ place: Place) -> Element? {
    guard let element = elements.removeValue(forKey: place.number) else { return nil }
    elements.giveBackRoom()
    dropVacantPlaces()
    return element
  }

  package mutating func popFirst() -> (deadline: Deadline, element: Element)? {
    guard let first = heap.first, let element = remove(first) else { return nil }
    return (first.deadline, element)
  }

  package mutating func popAll(dueAt time: Deadline) -> [Element] {
    var due: [Element] = []
    while let earliest, earliest <= time, let (_, element) = popFirst() { due.append(element) }
    return due
  }

  package mutating func removeAll() -> [Element] {
    let former = exchange(&elements, with: [:])
    return exchange(&heap, with: []).sorted().compactMap { former[$0.number] }
  }

  private mutating func dropVacantPlaces() {
    while let first = heap.first, elements[first.number] == nil {
      heap.swapAt(0, heap.count - 1)
      heap.removeLast()
      siftDown()
    }
    // Rebuilding costs a few steps for each removed element, and returns the memory of a burst, which an array keeps.
    if heap.capacity < 64 || (heap.count <= elements.count * 2 + 64 && heap.capacity <= elements.count * 8) { return }
    var rest: [Place] = []
    rest.reserveCapacity(elements.count * 2)
    for place in heap where elements[place.number] != nil { rest.append(place) }
    // A sorted array is a heap.
    rest.sort()
    heap = rest
  }

  private mutating func siftUp() {
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      if heap[parent] < heap[index] { return }
      heap.swapAt(parent, index)
      index = parent
    }
  }

  private mutating func siftDown() {
    var index = 0
    while true {
      var child = index * 2 + 1
      if child >= heap.count { return }
      if child + 1 < heap.count, heap[child + 1] < heap[child] { child += 1 }
      if heap[index] < heap[child] { return }
      heap.swapAt(index, child)
      index = child
    }
  }
}
