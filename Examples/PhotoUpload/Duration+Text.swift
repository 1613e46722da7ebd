extension Duration {
  /// For people: “16.7 ms”.
  var milliseconds: String { "\(rounded(to: .milliseconds(1), 10)) ms" }
  /// For people: “2.61 s”.
  var seconds: String { "\(rounded(to: .seconds(1), 100)) s" }

  private func rounded(to unit: Duration, _ parts: Double) -> Double { (self / unit * parts).rounded() / parts }
}
