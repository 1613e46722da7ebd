/// A property of a ``Schedulable`` class that can be accessed only on the object's scheduler.
///
/// Any other access traps, even in release builds, and names the property, its scheduler and the current scheduler.
///
/// ```swift
/// final class Feed: Schedulable, @unchecked Sendable {
///   let scheduler = SerialScheduler(name: "feed")
///   @Confined private var posts: [Post] = []
/// }
/// ```
///
/// The value is changed in place and never copied. An access costs a few nanoseconds. For many changes use one access,
/// such as `posts.append(contentsOf:)` or a function with an `inout` parameter.
///
/// As with any property, an access that overlaps a change traps (SE-0176).
///
/// An initializer may assign the property on any thread until all properties of the class have values, and after that
/// with `_name = Confined(wrappedValue:)`. A `deinit` reads it as ``uncheckedValue``.
@propertyWrapper
@safe
public struct Confined<Value> {
  @usableFromInline let storage: ConfinedStorage<Value>
  /// The cell, stored here so that an access need not retain the storage.
  @usableFromInline let cell: UnsafeMutablePointer<ConfinedCell<Value>>

  /// Creates a property with its initial value and, for messages, the location of its declaration.
  @inlinable
  public init(wrappedValue: Value, file: StaticString = #fileID, line: UInt = #line) {
    storage = ConfinedStorage(wrappedValue, EventOrigin(file: file, line: line))
    unsafe cell = storage.cell
  }

  /// Not available, because an access must check the scheduler of the enclosing object.
  @available(*, unavailable, message: "@Confined is for properties of classes that conform to Schedulable")
  public var wrappedValue: Value {
    get { misuse("@Confined is for properties of classes that conform to Schedulable.") }
    set {}
  }

  /// The value, without a check of the scheduler.
  ///
  /// Use this property in `deinit`, which can run on any thread: `_name.uncheckedValue`.
  public var uncheckedValue: Value { unsafe cell.pointee.value }

  /// The value, after a check of the scheduler. The compiler uses this subscript for each access to the property.
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

  /// Inlined, so that the key path becomes an offset. Creating a key path costs more than the access.
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
    // The end of the ongoing access would write to the deallocated cell.
    if unsafe cell.pointee.isChanging {
      misuse("A confined property was replaced while it is being changed. Assign its value instead.")
    }
    unsafe cell.deinitialize(count: 1)
    unsafe cell.deallocate()
  }

  @usableFromInline
  func reportViolation(of owner: some Schedulable) {
    // With a handler the program continues, and reading the other properties here could crash it.
    let name = SerialScheduler.violationHandler == nil ? name(in: owner).map { "“\($0)” of " } ?? "" : ""
    let type = String(describing: type(of: owner))
    owner.scheduler.reportViolation("\(name)“\(type)” (\(origin))", origin)
  }

  /// Returns the property's name, found by reflection, because the key path is never created.
  private func name(in owner: some Schedulable) -> String? {
    for mirror in sequence(first: Mirror(reflecting: owner), next: \.superclassMirror) {
      let property = mirror.children.first { child in (child.value as? Confined<Value>)?.storage === self }
      if let label = property?.label { return String(label.drop { $0 == "_" }) }
    }
    return nil
  }

  @usableFromInline
  static func reportOverlap(_ owner: some Schedulable) -> Never {
    misuse("A confined property of “\(type(of: owner))” was accessed while it is being changed. Change a copy of it.")
  }
}

@usableFromInline
struct ConfinedCell<Value> {
  /// Swift does not detect overlapping accesses through a pointer, so the property does.
  @usableFromInline var isChanging = false
  @usableFromInline var value: Value

  @usableFromInline
  init(_ value: Value) { self.value = value }
}
