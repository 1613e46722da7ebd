import Testing

/// The size of the package, which its readers must remember. Lower a limit when the package has become simpler.
struct HouseRuleTests {
  @Test func theSourcesStayWithinTheirLimits() throws {
    let all = SourceCounts(of: try Repository.files(in: "Sources", ending: "swift"))
    print(all)
    #expect(all.types > 100 && all.storedBooleans > 0 && all.internalDocumentationLines > 100)
    #expect(all.types <= 235)
    #expect(all.storedBooleans <= 23)
    #expect(all.extensionFiles <= 10)
    #expect(all.internalDocumentationLines <= 1_104)
    #expect(all.lines <= 17_395)
    #expect(all.longestFile <= 348)
  }

  @Test func everyKindIsCounted() {
    let text = """
      /// Public.
      public enum A {
        /// Public.
        case a
        /// Internal.
        /// Internal.
        @inline(__always)
        private static let b = true
        let c: Bool
        var d: Bool { c }
        var e: Bool {
          let f = false
          return f
        }
        private(set) var g: Bool? = nil
        let l: Bool  // Internal.
        var h = Locked(false)
        /// Internal.
        final class D {
          func i(
            j: Int
          ) {
            var k = true
          }
        }
      }

      """
    let counts = SourceCounts(of: [SourceText(path: "Sources/Operations/A+B.swift", text: text)])
    #expect(counts.types == 2 && counts.storedBooleans == 5 && counts.internalDocumentationLines == 3)
    #expect(counts.lines == 26 && counts.longestFile == 26 && counts.extensionFiles == 1)
  }
}

/// What files have of each kind.
private struct SourceCounts {
  private(set) var types = 0
  private(set) var storedBooleans = 0
  /// Files with a name like `X+Y.swift`.
  private(set) var extensionFiles = 0
  /// Lines of the comments above declarations that are not public.
  private(set) var internalDocumentationLines = 0
  private(set) var lines = 0
  private(set) var longestFile = 0

  init(of files: [SourceText]) { for file in files { add(file) } }

  private mutating func add(_ file: SourceText) {
    let count = file.lines.last?.isEmpty == true ? file.lines.count - 1 : file.lines.count
    lines += count
    longestFile = max(longestFile, count)
    if file.path.contains("+") { extensionFiles += 1 }
    // The declarations and statements around a line, outermost first. The formatter sees to the indentation.
    var enclosing: [Declaration] = []
    var documentationLines = 0
    for line in file.lines {
      let declaration = Declaration(line)
      if declaration.text.isEmpty || declaration.text.hasPrefix("#") { continue }
      if declaration.text.hasPrefix("///") {
        documentationLines += 1
        continue
      }
      if declaration.isAttribute || declaration.text == "{" { continue }
      while let last = enclosing.last, last.indentation >= declaration.indentation { enclosing.removeLast() }
      let outer = enclosing.last
      if !declaration.isPublic(in: outer) { internalDocumentationLines += documentationLines }
      documentationLines = 0
      if declaration.isType { types += 1 }
      if declaration.isStoredBoolean, outer?.isType == true || outer?.isExtension == true { storedBooleans += 1 }
      enclosing.append(declaration)
    }
  }
}

/// A line that may declare something.
private struct Declaration {
  private static let keywords: Set<Substring> = [
    "struct", "class", "enum", "actor", "protocol", "extension", "let", "var", "func", "case", "typealias", "subscript",
  ]

  let indentation: Int
  let text: Substring
  private let isMarkedPublic: Bool
  /// Empty if the line declares nothing.
  private let keyword: Substring
  private let name: Substring

  init(_ line: Substring) {
    indentation = line.prefix { $0 == " " }.count
    text = line.dropFirst(indentation)
    let words = text.split(separator: " ")
    let modifiers = words.prefix { !Self.keywords.contains($0) && !$0.hasPrefix("init") }
    isMarkedPublic = modifiers.contains("public") || modifiers.contains("open")
    let rest = words.dropFirst(modifiers.count)
    (keyword, name) = (rest.first ?? "", rest.dropFirst().first ?? "")
  }

  /// Whether the line has an attribute of the declaration that follows, and nothing else.
  var isAttribute: Bool { text.hasPrefix("@") && keyword.isEmpty }
  var isExtension: Bool { keyword == "extension" }

  var isType: Bool {
    ["struct", "class", "enum", "actor", "protocol"].contains(keyword) && name.first?.isUppercase == true
  }

  var isStoredBoolean: Bool {
    guard ["let", "var"].contains(keyword) else { return false }
    // A brace begins a getter, except that of an observer.
    let isDeclared = text.contains(#/: Bool\??($| =| +\/\/| {.*didSet)/#)
    return isDeclared || text.contains(#/ = ((Locked|Atomic)\()?(true|false)\b/#)
  }

  func isPublic(in outer: Declaration?) -> Bool {
    if isMarkedPublic { return true }
    guard let outer, outer.isMarkedPublic else { return false }
    return outer.keyword == "protocol" || (outer.keyword == "enum" && keyword == "case")
  }
}
