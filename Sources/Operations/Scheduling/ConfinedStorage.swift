/// Where the value of a ``Confined`` property is.
@usableFromInline
@safe
final class ConfinedStorage<Value> {
  @usableFromInline let cell: UnsafeMutablePointer<ConfinedCell<Value>>
  private let origin: EventOrigin

  @usableFromInline
  init(_ value: Value, _ origin: EventOrigin) {
    unsafe cell = .allocate(capacity: 1)
    unsafe cell.initialize(to: ConfinedCell(value))
    self.origin = origin
  }

  deinit {
    // An access is going to put an end to the change, in a cell that is no more.
    if unsafe cell.pointee.isChanging {
      misuse("A confined property was replaced while it is being changed. Set its value.")
    }
    unsafe cell.deinitialize(count: 1)
    unsafe cell.deallocate()
  }

  @usableFromInline
  func reportViolation(of owner: some Schedulable) {
    // The handler's program goes on: reading the other properties here, to learn the name, could crash it.
    let name = SerialScheduler.violationHandler == nil ? name(in: owner).map { "“\($0)” of " } ?? "" : ""
    let type = String(describing: type(of: owner))
    owner.scheduler.report(SchedulerViolation("\(name)“\(type)” (\(origin))", of: owner.scheduler, origin))
  }

  /// Reflection would be told by the storage's key path, too, but making one costs more than the access.
  private func name(in owner: some Schedulable) -> String? {
    for mirror in sequence(first: Mirror(reflecting: owner), next: \.superclassMirror) {
      let property = mirror.children.first { child in (child.value as? Confined<Value>)?.storage === self }
      if let label = property?.label { return String(label.drop { $0 == "_" }) }
    }
    return nil
  }

  @usableFromInline
  static func reportOverlap(_ owner: some Schedulable) -> Never {
    misuse(
      "A confined property of “\(type(of: owner))” was touched while it is being changed. Take the value out, change it, "
        + "and set it in the end."
    )
  }
}

@usableFromInline
struct ConfinedCell<Value> {
  /// Swift's own check of overlapping accesses does not reach behind a pointer.
  @usableFromInline var isChanging = false
  @usableFromInline var value: Value

  @usableFromInline
  init(_ value: Value) { self.value = value }
}
