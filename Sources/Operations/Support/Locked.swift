import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A value that is only accessible while its lock is held.
///
/// The lock is a pthread mutex in the tail of the value's allocation, because every operation has a lock. Creating the
/// lock takes 16 ns, and locking takes 9 ns. An `NSLock` takes 82 ns and 11 ns, and needs four more allocations.
/// `Synchronization.Mutex` is no faster, and the thread sanitizer reports false races for it.
///
/// Copies share one value. The lock is not recursive: `body` must not call user code, Foundation, or another
/// `withLock`.
package struct Locked<Value>: @unchecked Sendable {
  private let storage: ManagedBuffer<Value, MutexStorage>

  package init(_ value: Value) {
    storage = Storage<Value>.create(minimumCapacity: 1) { buffer in
      unsafe buffer.withUnsafeMutablePointerToElements { element in
        unsafe element.initialize(to: MutexStorage())
        unsafe MutexStorage.start(&element.pointee.mutex)
      }
      return value
    }
  }

  @inline(__always)
  package func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe storage.withUnsafeMutablePointers { value, element throws(Failure) in
      unsafe pthread_mutex_lock(&element.pointee.mutex)
      defer { unsafe pthread_mutex_unlock(&element.pointee.mutex) }
      return try unsafe body(&value.pointee)
    }
  }
}

/// The buffer behind ``Locked``, a subclass that destroys the mutex.
private final class Storage<Value>: ManagedBuffer<Value, MutexStorage> {
  deinit {
    _ = unsafe withUnsafeMutablePointerToElements { element in
      unsafe pthread_mutex_destroy(&element.pointee.mutex)
    }
  }
}

@safe private struct MutexStorage {
  var mutex = unsafe pthread_mutex_t()

  #if canImport(Glibc)
  /// A new mutex that spins for a moment before it puts the thread to sleep.
  ///
  /// The package holds its locks for tens of nanoseconds. The default mutex of Glibc enters the kernel at once, which
  /// takes microseconds. The pthreads of Apple's platforms and of Musl have no adaptive kind.
  private static let adaptive: pthread_mutex_t = {
    var attributes = pthread_mutexattr_t()
    var mutex = unsafe pthread_mutex_t()
    unsafe pthread_mutexattr_init(&attributes)
    unsafe pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
    unsafe pthread_mutex_init(&mutex, &attributes)
    unsafe pthread_mutexattr_destroy(&attributes)
    return unsafe mutex
  }()
  #endif

  static func start(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) {
    #if canImport(Glibc)
    // Copying an unlocked mutex costs less than initializing a mutex.
    unsafe mutex.pointee = adaptive
    #else
    unsafe pthread_mutex_init(mutex, nil)
    #endif
  }
}
