/// Sees whether an object has been released, without keeping it.
package final class WeakReference<Object: AnyObject> {
  package weak var object: Object?

  package init(_ object: Object) { self.object = object }
}
