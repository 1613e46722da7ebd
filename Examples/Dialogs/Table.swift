import Foundation
import Operations

/// Shows what happened to the dialogs, with the launches side by side.
@MainActor
struct Table {
  private static let width = 14

  let lines: [String]

  init(of launches: [Launch]) {
    let rows = Table.rows.flatMap { title, entry in
      let columns = [[title]] + launches.map { $0.dialogs.compactMap(entry) }
      let height = columns.map(\.count).max() ?? 0
      return (0..<height).map { row in Table.line(columns.map { $0.dropFirst(row).first ?? "" }) }
    }
    lines = [Table.line([""] + launches.map { "\($0.policy)" })] + rows
  }

  /// The rows, and the entry that a row has for a dialog, if any.
  private static let rows: [(title: String, entry: @MainActor (DialogOperation) -> String?)] = [
    ("shown", { $0.wasShown ? $0.subject : nil }),
    ("answered", { dialog in dialog.answer.map { "\(dialog.subject): \($0 ? "y" : "n")" } }),
    ("dismissed", { $0.wasShown && $0.isCancelled ? $0.subject : nil }),
    ("dropped", { $0.errors.contains { OperationError.Code.excluded ~= $0 } ? $0.subject : nil }),
  ]

  private static func line(_ cells: [String]) -> String {
    let line = cells.map { $0.padding(toLength: width, withPad: " ", startingAt: 0) }.joined()
    return line.replacing(#/ +$/#, with: "")
  }
}
