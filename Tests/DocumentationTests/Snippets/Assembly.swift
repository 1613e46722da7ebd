import Foundation
import Operations
import OperationsTestSupport
import Testing

struct Settings: Sendable {
  let language = "en"
}

final class Assembly: Schedulable, @unchecked Sendable {
  let scheduler = SerialScheduler.main
  let disk = SerialScheduler(name: "disk")
  @Confined private var builtSettings: Settings?
  @Confined private var builtLibrary: Library?

  func settings() -> Settings {
    if let builtSettings { return builtSettings }
    let settings = Settings()
    builtSettings = settings
    return settings
  }

  func library() throws -> Library {
    if let builtLibrary { return builtLibrary }
    let library = try disk.wait { [self] in try Library(in: self) }
    builtLibrary = library
    return library
  }
}

final class Library: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  let language: String
  @Confined private var titles: [String] = []

  init(in assembly: Assembly) throws {
    scheduler = assembly.disk
    // The main thread runs this while it waits.
    language = try assembly.wait { assembly in assembly.settings().language }
    titles = ["Index (\(language))"]  // on the disk's scheduler
  }

  func firstTitle() -> String? { titles.first }
}

extension Assembly {
  func builtOrNewLibrary() async throws -> Library {
    if let library = try await run({ assembly in assembly.builtLibrary }) { return library }
    let library = try await disk.run { [self] in try Library(in: self) }
    return try await run { assembly in
      if let earlier = assembly.builtLibrary { return earlier }  // another task has been faster
      assembly.builtLibrary = library
      return library
    }
  }
}

/// The section “A graph of services” of the page SchedulableObjects.
@Suite(.timeLimit(.minutes(5)))
struct AssemblySnippets {
  @Test func aServiceOnAnotherSchedulerAsksBackWhileItIsCreated() async throws {
    let assembly = Assembly()
    let built = try await assembly.run { assembly in [try assembly.library(), try assembly.library()] }
    #expect(built[0] === built[1] && built[0].scheduler === assembly.disk)
    #expect(try await built[0].run { library in library.firstTitle() } == "Index (en)")
    let again = try await assembly.builtOrNewLibrary()
    #expect(again === built[0])
  }

  @Test func theAsynchronousWayBuildsOneToo() async throws {
    let assembly = Assembly()
    let libraries = try await withThrowingTaskGroup(of: Library.self) { group in
      for _ in 0..<8 { group.addTask { try await assembly.builtOrNewLibrary() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(libraries.count == 8 && libraries.allSatisfy { $0 === libraries[0] })
    let built = try await assembly.run { assembly in try assembly.library() }
    #expect(built === libraries[0])
  }
}
