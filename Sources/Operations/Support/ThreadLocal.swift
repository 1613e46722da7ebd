import Foundation

/// An object that is associated with the current thread during a call.
///
/// The object is stored under a pthread key. A task-local value would follow a task instead, and
/// `Thread.threadDictionary` costs a dictionary. When nested calls return, the previous object is restored.
struct ThreadLocal<Object: AnyObject>: Sendable {
  private let key: pthread_key_t

  init() {
    var key = pthread_key_t()
    let status = unsafe pthread_key_create(&key, nil)
    if status != 0 {
      misuse(
        "The process has no thread-local key left (pthread_key_create returned \(status)). Use fewer libraries that create "
          + "such keys."
      )
    }
    self.key = key
  }

  var current: Object? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Returns whether `object` is the current object, or nil if there is none. Compares addresses, without retaining the
  /// objects.
  func isCurrent(_ object: Object) -> Bool? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe pointer == Unmanaged.passUnretained(object).toOpaque()
  }

  /// Calls `body` with `object` as the current object of the thread.
  func withValue<Result>(_ object: Object, _ body: () throws -> Result) rethrows -> Result {
    let previous = unsafe pthread_getspecific(key)
    unsafe pthread_setspecific(key, Unmanaged.passUnretained(object).toOpaque())
    defer { unsafe pthread_setspecific(key, previous) }
    return try withExtendedLifetime(object) { try body() }
  }

  /// Calls `body` without a current object of the thread.
  func withoutValue<Result>(_ body: () throws -> Result) rethrows -> Result {
    guard let previous = unsafe pthread_getspecific(key) else { return try body() }
    pthread_setspecific(key, nil)
    defer { unsafe pthread_setspecific(key, previous) }
    return try body()
  }
}
