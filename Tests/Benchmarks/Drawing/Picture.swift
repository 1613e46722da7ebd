import Foundation

/// A drawing as SVG, for light and for dark pages.
struct Picture {
  static let fonts = "-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
  /// Narrow, so that the text is legible when a page shrinks the picture.
  static let width = 560.0
  /// A page can be dark while the system is light, so a picture has a background of its own.
  static let background = """
    .page{fill:#fff}@media (prefers-color-scheme:dark){.page{fill:#1c1c1e}}
    """
  private static let style = """
    text{font:16px \(fonts);fill:#1d1d1f}.muted{fill:#6e6e73}.end{text-anchor:end}.middle{text-anchor:middle}
    .first{fill:#2563eb}.second{fill:#c2410c}
    path{fill:none;stroke-width:2.5}path.grid{stroke:#d2d2d7;stroke-width:1}
    path.first{stroke:#2563eb;fill:none}path.second{stroke:#c2410c;fill:none}
    @media (prefers-color-scheme:dark){
    text{fill:#f5f5f7}.muted{fill:#a1a1a6}.first{fill:#60a5fa}.second{fill:#fb923c}
    path.grid{stroke:#48484a}path.first{stroke:#60a5fa;fill:none}path.second{stroke:#fb923c;fill:none}
    }
    """

  private let height: Double
  private var body = ""

  init(height: Double) { self.height = height }

  mutating func text(_ text: String, _ x: Double, _ y: Double, _ classes: String = "") {
    body += "<text x='\(Self.number(x))' y='\(Self.number(y))' class='\(classes)'>\(text)</text>\n"
  }

  mutating func line(_ points: [(x: Double, y: Double)], hasDots: Bool, _ classes: String) {
    let points = points.map { (x: Self.number($0.x), y: Self.number($0.y)) }
    body += "<path d='M\(points.map { "\($0.x) \($0.y)" }.joined(separator: " L"))' class='\(classes)'/>\n"
    if !hasDots { return }
    for point in points { body += "<circle cx='\(point.x)' cy='\(point.y)' r='4' class='\(classes)'/>\n" }
  }

  func write(to file: URL) throws {
    let (width, height) = (Self.number(Self.width), Self.number(height))
    let svg = """
      <svg xmlns='http://www.w3.org/2000/svg' width='\(width)' height='\(height)' viewBox='0 0 \(width) \(height)'>
      <style>
      \(Self.style)
      \(Self.background)
      </style>
      <rect class='page' width='100%' height='100%' rx='8'/>
      \(body)</svg>

      """
    try svg.write(to: file, atomically: true, encoding: .utf8)
  }

  private static func number(_ value: Double) -> String { String(format: "%.0f", value) }
}
