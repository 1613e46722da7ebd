/// Ends as the operation does that its input leads to.
final class FlatMapOperation<Input: Sendable, Next: OutputOperation>: ResultOperation<Next.Output>, InputOperation,
  @unchecked Sendable
{
  /// Written before execution, on the thread that executes.
  var input: Input?
  /// Taken by execution or, if that never comes, by the end.
  private var next: (@Sendable (Input) throws -> Next)?

  init(_ next: @escaping @Sendable (Input) throws -> Next) {
    self.next = next
    super.init()
  }

  override func execute() {
    defer { next = nil }
    guard let input, let next else { return finish(with: inputMissingError) }
    do { runInside(try next(input)) { self.finish(with: $0) } } catch { finish(with: error) }
  }

  override func dropWork() { next = nil }
}
