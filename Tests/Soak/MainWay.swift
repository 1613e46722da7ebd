import Foundation
import Operations

/// A way in which a thread sends a closure to the main thread.
package enum MainWay: CaseIterable, Sendable {
  case scheduled, coalesced, afterNothing, event, finished, observed, operation, dispatched, task

  /// Sends a closure, and keeps no reference to it.
  package func send(_ make: () -> @Sendable () -> Void) {
    func receiver<Value>(_ body: @escaping @Sendable () -> Void) -> @Sendable (Value) -> Void { { _ in body() } }
    switch self {
    case .scheduled: SerialScheduler.scheduleOnMain(make())
    case .coalesced: SerialScheduler.scheduleOnMain(coalescing: UUID().uuidString, make())
    case .afterNothing: SerialScheduler.scheduleOnMain(after: .zero, make())
    case .event: SerialScheduler.main.schedule(make())
    case .finished:
      let operation = ResultOperation {}
      operation.onFinishOnMain(receiver(make()))
      operation.start()
    case .observed:
      let operation = AsyncOperation()
      operation.addObserver(.onMain(didFinish: receiver(make())))
      operation.start()
    case .operation: MainOperation(Self.ending(make())).start()
    case .dispatched: DispatchQueue.main.async(execute: make())
    case .task: Task { @MainActor [body = make()] in body() }
    }
  }

  private static func ending(_ body: @escaping @Sendable () -> Void) -> @MainActor @Sendable (MainOperation) -> Void {
    { operation in
      body()
      operation.finish()
    }
  }
}

/// What the producers send to the main thread. It must arrive in the order in which each of them has sent it.
final class SoakScreen: @unchecked Sendable {
  /// Belongs to the main thread.
  private final class Picture: Sendable {
    private let (way, token, log): (MainWay, LiveCount.Token, SoakLog)

    init(_ way: MainWay, _ token: LiveCount.Token, _ log: SoakLog) {
      (self.way, self.token, self.log) = (way, token, log)
    }

    deinit {
      // Dispatch and the runtime may release their closures anywhere.
      if SerialScheduler.main.isCurrent || way == .dispatched || way == .task { return }
      log.report("\(way) was released on another thread than the main thread")
    }
  }

  private let log: SoakLog
  /// The number that arrived last from each producer. Accessed only on the main thread.
  private var last: [Int: Int] = [:]

  init(_ log: SoakLog) { self.log = log }

  func send(_ number: Int, from producer: Int, _ token: LiveCount.Token) {
    let way = MainWay.allCases[(number &* 7 &+ producer) % MainWay.allCases.count]
    way.send {
      let picture = Picture(way, token, log)
      return { [self] in withExtendedLifetime(picture) { receive(number, producer, way) } }
    }
  }

  private func receive(_ number: Int, _ producer: Int, _ way: MainWay) {
    if !SerialScheduler.main.isCurrent { log.report("\(way) came on another thread than the main thread") }
    let previous = last.updateValue(number, forKey: producer) ?? -1
    if number != previous + 1 {
      log.report("on the main thread, the \(number). of producer \(producer) (\(way)) came after its \(previous).")
    }
  }

  /// Waits until everything that has been sent so far has arrived.
  func arrived() async { await MainActor.run {} }
}
