/// A file that is to be uploaded.
struct Photo: Sendable {
  let number: Int

  /// What an app does before: it reads, checks, scales and encodes. This one only takes as long.
  func prepare() { Processor.work(for: Budget.photo) }
}
