#if canImport(ObjectiveC)
import ObjectiveC
#endif

/// Calls `body`, and then releases the objects that Objective-C code has autoreleased in it.
///
/// The system does the same when a thread returns to it. A thread that runs events, members or timers in a loop may not
/// return for a long time. Linux has no autoreleased objects.
@inline(__always)
func withAutoreleasePool(_ body: () -> Void) {
  #if canImport(ObjectiveC)
  autoreleasepool(invoking: body)
  #else
  body()
  #endif
}
