import Foundation

/// An object that belongs to the current thread for the length of a call.
///
/// Task-local values follow a task and `Thread.threadDictionary` costs a dictionary; this is one pthread key, and what
/// was there before is put back, so that calls may nest.
struct ThreadLocal<Object: AnyObject>: Sendable {
  private let key: pthread_key_t

  init() {
    var key = pthread_key_t()
    let status = unsafe pthread_key_create(&key, nil)
    if status != 0 { misuse("The process has no thread-local key left (pthread_key_create returned \(status)).") }
    self.key = key
  }

  var current: Object? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Whether it is this object; nil if there is none. Looks at the reference only, which costs no counting.
  func isCurrent(_ object: Object) -> Bool? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe pointer == Unmanaged.passUnretained(object).toOpaque()
  }

  func withValue<Result>(_ object: Object, _ body: () throws -> Result) rethrows -> Result {
    let previous = unsafe pthread_getspecific(key)
    unsafe pthread_setspecific(key, Unmanaged.passUnretained(object).toOpaque())
    defer { unsafe pthread_setspecific(key, previous) }
    return try withExtendedLifetime(object) { try body() }
  }
}
