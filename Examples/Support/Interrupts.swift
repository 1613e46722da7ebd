import Foundation

/// Handles Ctrl-C: calls a handler at the first one, and exits at the second.
package struct Interrupts {
  package static let exitStatus: Int32 = 130

  private let source: any DispatchSourceSignal

  package init(_ handler: @escaping @Sendable () -> Void) {
    signal(SIGINT, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGINT, queue: DispatchQueue(label: "interrupts"))
    var isFirst = true
    source.setEventHandler {
      if !isFirst { exit(Interrupts.exitStatus) }
      isFirst = false
      handler()
    }
    source.activate()
  }

  package func stop() { source.cancel() }
}
