import Foundation

/// A drawing as SVG, for light and for dark pages.
struct Picture {
  /// DocC shows a file whose name ends in `~dark` on dark pages.
  enum Scheme: String, CaseIterable {
    case light = ""
    case dark = "~dark"

    var text: String { self == .light ? "#1d1d1f" : "#f5f5f7" }
    var muted: String { self == .light ? "#6e6e73" : "#a1a1a6" }

    fileprivate var style: String {
      let isLight = self == .light
      let (first, second) = isLight ? ("#2563eb", "#c2410c") : ("#60a5fa", "#fb923c")
      let (pale, grid) = isLight ? ("#bfd3fa", "#d2d2d7") : ("#2f4a73", "#48484a")
      return """
        text{font:16px \(Picture.fonts);fill:\(text)}.muted{fill:\(muted)}.end{text-anchor:end}.middle{text-anchor:middle}
        .first{fill:\(first)}.second{fill:\(second)}.pale{fill:\(pale)}path{fill:none;stroke-width:2.5}
        path.grid{stroke:\(grid);stroke-width:1}path.first{stroke:\(first);fill:none}path.second{stroke:\(second);fill:none}
        """
    }
  }

  static let fonts = "-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
  /// Narrow, so that the text is legible when a page shrinks the picture.
  static let width = 560.0
  private let height: Double
  private var body = ""

  init(height: Double) { self.height = height }

  mutating func text(_ text: String, _ x: Double, _ y: Double, _ classes: String = "") {
    body += "<text x='\(Self.number(x))' y='\(Self.number(y))' class='\(classes)'>\(text)</text>\n"
  }

  mutating func bar(from start: Double, to end: Double, _ y: Double, height: Double, _ classes: String) {
    let width = Self.number(max(end - start, 1))
    body += "<rect x='\(Self.number(start))' y='\(Self.number(y))' width='\(width)' height='\(Self.number(height))'"
    body += " rx='2' class='\(classes)'/>\n"
  }

  mutating func line(_ points: [(x: Double, y: Double)], hasDots: Bool, _ classes: String) {
    let points = points.map { (x: Self.number($0.x), y: Self.number($0.y)) }
    body += "<path d='M\(points.map { "\($0.x) \($0.y)" }.joined(separator: " L"))' class='\(classes)'/>\n"
    if !hasDots { return }
    for point in points { body += "<circle cx='\(point.x)' cy='\(point.y)' r='4' class='\(classes)'/>\n" }
  }

  func write(_ name: String, to folder: URL) throws {
    let (width, height) = (Self.number(Self.width), Self.number(height))
    for scheme in Scheme.allCases {
      let svg = """
        <svg xmlns='http://www.w3.org/2000/svg' width='\(width)' height='\(height)' viewBox='0 0 \(width) \(height)'>
        <style>
        \(scheme.style)
        </style>
        \(body)</svg>

        """
      try svg.write(to: folder.appending(path: "\(name)\(scheme.rawValue).svg"), atomically: true, encoding: .utf8)
    }
  }

  private static func number(_ value: Double) -> String { String(format: "%.0f", value) }
}
