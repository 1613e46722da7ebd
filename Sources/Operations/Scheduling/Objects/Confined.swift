/// A property of a ``Schedulable`` class that is touched on the object's scheduler only: elsewhere it traps, in release
/// builds, too, with a sentence that names it and both schedulers.
///
/// ```swift
/// final class Feed: Schedulable, @unchecked Sendable {
///   let scheduler = SerialScheduler(name: "feed")
///   @Confined private var posts: [Post] = []
/// }
/// ```
///
/// The value is changed in place, never by way of a copy. An access costs some nanoseconds; many changes at once are
/// cheapest in one access: `posts.append(contentsOf:)`, or a function with an `inout` parameter.
///
/// While a property is being changed nobody else may touch it, as with any other (SE-0176): that traps. In `init` the
/// property may be given its value anywhere, in `deinit` it can be had as ``uncheckedValue``.
@propertyWrapper
@safe
public struct Confined<Value> {
  /// Keeps the cell alive.
  @usableFromInline let storage: ConfinedStorage<Value>
  /// The storage's: reached without counting a reference.
  @usableFromInline let cell: UnsafeMutablePointer<ConfinedCell<Value>>

  /// - Parameters:
  ///   - wrappedValue: The value to begin with.
  ///   - file: Where the property is declared, for the sentence of the trap.
  ///   - line: The line of it.
  @inlinable
  public init(wrappedValue: Value, file: StaticString = #fileID, line: UInt = #line) {
    storage = ConfinedStorage(wrappedValue, EventOrigin(file: file, line: line))
    unsafe cell = storage.cell
  }

  /// Never used: the value is reached through the object that has it, whose scheduler is checked.
  @available(*, unavailable, message: "@Confined is for properties of classes that are Schedulable")
  public var wrappedValue: Value {
    get { misuse("@Confined is for properties of classes that are Schedulable.") }
    set {}
  }

  /// The value, unchecked, for `deinit`: nobody else has the object any more, whatever thread lets it go. Within the
  /// class it is `_name.uncheckedValue`.
  public var uncheckedValue: Value { unsafe cell.pointee.value }

  /// The value, for the compiler, which calls this where the property is read or changed. Traps off the object's
  /// scheduler.
  @inlinable
  public static subscript<Owner: Schedulable>(
    _enclosingInstance owner: Owner,
    wrapped _: ReferenceWritableKeyPath<Owner, Value>,
    storage storage: ReferenceWritableKeyPath<Owner, Self>
  ) -> Value {
    @inline(__always) get { unsafe checkedCell(of: owner, storage).pointee.value }
    @inline(__always) _modify {
      let cell = unsafe checkedCell(of: owner, storage)
      unsafe cell.pointee.isChanging = true
      defer { unsafe cell.pointee.isChanging = false }
      yield unsafe &cell.pointee.value
    }
  }

  /// Inlined, so that the key path becomes an offset: making one costs more than the access.
  @inlinable
  @inline(__always)
  static func checkedCell<Owner: Schedulable>(
    of owner: Owner,
    _ storage: ReferenceWritableKeyPath<Owner, Self>
  ) -> UnsafeMutablePointer<ConfinedCell<Value>> {
    if !owner.scheduler.isCurrent { owner[keyPath: storage].storage.reportViolation(of: owner) }
    let cell = unsafe owner[keyPath: storage].cell
    if unsafe cell.pointee.isChanging { ConfinedStorage<Value>.reportOverlap(owner) }
    return unsafe cell
  }
}

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
