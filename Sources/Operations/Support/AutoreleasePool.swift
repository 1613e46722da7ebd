#if canImport(ObjectiveC)
import ObjectiveC
#endif

/// Calls `body`, and then releases what Objective-C code has autoreleased in it, because a thread that runs events,
/// members or timers in a loop may not return to the system for a long time. Linux has no autoreleased objects.
@inline(__always)
func withAutoreleasePool(_ body: () -> Void) {
  #if canImport(ObjectiveC)
  autoreleasepool(invoking: body)
  #else
  body()
  #endif
}
