public import Foundation

extension Operation {
  /// Sets the name and returns the operation: `let page = Download(url).named("page 3")`.
  ///
  /// Errors, reports and graphs use the name of an operation, or the name of its type if it has none.
  @discardableResult
  public func named(_ name: String) -> Self {
    self.name = name
    return self
  }
}
