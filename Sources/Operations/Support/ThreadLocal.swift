import Foundation

/// An object that is associated with the current thread during a call. A task-local value would follow a task instead,
/// and `Thread.threadDictionary` costs a dictionary.
struct ThreadLocal<Object: AnyObject>: Sendable {
  private let key: pthread_key_t

  init() {
    var key = pthread_key_t()
    let status = unsafe pthread_key_create(&key, nil)
    if status != 0 {
      misuse("The process has no thread-local key left (error \(status)). Use fewer libraries that create such keys.")
    }
    self.key = key
  }

  var current: Object? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Returns nil if there is no current object. Compares addresses, without retaining the objects.
  func isCurrent(_ object: Object) -> Bool? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe pointer == Unmanaged.passUnretained(object).toOpaque()
  }

  func withValue<Result>(_ object: Object?, _ body: () throws -> Result) rethrows -> Result {
    let previous = unsafe pthread_getspecific(key)
    unsafe pthread_setspecific(key, object.map { unsafe Unmanaged.passUnretained($0).toOpaque() })
    defer { unsafe pthread_setspecific(key, previous) }
    return try withExtendedLifetime(object) { try body() }
  }
}
