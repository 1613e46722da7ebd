/// When photos have their turn on the main thread.
enum Pace: Sendable {
  case atOnce
  case batches(of: Int)
  case portions(of: Int, every: Duration)

  /// A thousand every five seconds. Fewer photos come in two portions, and the second one as much sooner, for otherwise
  /// they would all come at once.
  static func throttled(_ photos: Int) -> Self {
    let portion = min(1000, (photos + 1) / 2)
    return .portions(of: portion, every: .seconds(5) * portion / 1000)
  }

  /// How many have their turn in a frame.
  func turns(at elapsed: Duration, done: Int, of photos: Int) -> Int {
    switch self {
    case .atOnce: photos - done
    case .batches(let size): min(size, photos - done)
    case .portions(let size, let interval): min((Int(elapsed / interval) + 1) * size, photos) - done
    }
  }
}

extension Pace: CustomStringConvertible {
  var description: String {
    switch self {
    case .atOnce: "all at once"
    case .batches(let size): "\(size) a frame"
    case .portions(let size, let interval): "\(size) every \(interval.seconds)"
    }
  }
}
