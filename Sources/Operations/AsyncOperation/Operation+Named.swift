public import Foundation

extension Operation {
  /// Names the operation and returns it: `let page = Download(url).named("page 3")`.
  ///
  /// Errors, reports and graphs speak of the operation by its name, or by its type's if it has none.
  @discardableResult
  public func named(_ name: String) -> Self {
    self.name = name
    return self
  }
}
