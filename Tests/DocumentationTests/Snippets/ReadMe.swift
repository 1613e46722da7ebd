import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The README, and the landing page of the documentation.
@Suite(.timeLimit(.minutes(5)))
struct ReadMeSnippets {
  // MARK: The first program

  /// An operation whose work continues after `execute()` returns.
  final class Brew: AsyncOperation, @unchecked Sendable {
    override func execute() {
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { [self] in
        print(name ?? "", "is ready")
        finish()  // from any thread; the first call counts
      }
    }
  }

  @Test func theFirstProgram() async throws {
    let queue = OperationQueue()  // any stock queue

    let breakfast = GroupOperation("breakfast") {
      Brew().named("water") ==> [Brew().named("tea"), Brew().named("coffee")]
      Brew().named("toast")
    }
    try await queue.run(breakfast)  // throws every failure, with the path that leads to it

    let menu = TaskOperation { "tea coffee toast" }  // an async function as an operation
    let count = menu.map { $0.split(separator: " ").count }  // waits for `menu` and receives its value
    print(try await queue.run(graphEndingIn: count), "things on the table")
    #expect(breakfast.isSuccessful)
    #expect(try await count.value == 3)
  }

  @Test func operationsAndGroups() async throws {
    typealias Download = Load
    let (a, b, c, d, upload) = (operation("a"), operation("b"), operation("c"), operation("d"), operation("upload"))
    let urls = ["1", "2"]
    a ==> [b, c] ==> d  // b and c wait for a, and d waits for both

    upload.addCondition(.noFailedDependencies)
    upload.timeout = .seconds(30)  // then the operation is cancelled and finished, and its queue is free

    let importer = GroupOperation("Import") { for url in urls { Download(url) } }
    importer.maxConcurrentOperationCount = 4
    try await OperationQueue().run(GroupOperation([a, b, c, d, upload, importer]))
    #expect(upload.isSuccessful && importer.isSuccessful)
  }

  @Test func values() async throws {
    let url = URL(filePath: "page")
    let fetch: @Sendable (URL) async throws -> String = { _ in "one two three" }
    let queue = OperationQueue()
    let text = TaskOperation { try await fetch(url) }
    let words = text.map { $0.split(separator: " ").count }
    print(try await queue.run(graphEndingIn: words))
    #expect(try await words.value == 3)

    let download = ResultOperation { "1 2" }
    let parse = TransformOperation { (text: String) in text.split(separator: " ").compactMap { Int($0) } }
    let store = TransformOperation { (numbers: [Int]) in numbers.count }
    let (user, settings, pages) = (Load("user"), Load("settings"), [Load("1"), Load("2")])
    download.pass(to: parse).pass(to: store)  // no operation in between that could be forgotten

    let both = zip(user, settings)  // (User, Settings)
    let all = collect(pages)  // [Page], in the order given
    #expect(try await queue.run(graphEndingIn: store) == 2)
    #expect(try await queue.run(graphEndingIn: both) == ("text of user", "text of settings"))
    #expect(try await queue.run(graphEndingIn: all) == ["text of 1", "text of 2"])
  }

  // MARK: Schedulers

  actor Library: ScheduledActor {  // an actor on a scheduler, checked by the compiler
    nonisolated let scheduler: SerialScheduler
    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
  }

  final class Printer: Schedulable, @unchecked Sendable {  // a class on a scheduler, checked at run time
    let scheduler = SerialScheduler(name: "printer")
    @Confined private var lines: [String] = []  // traps when touched off its scheduler
  }

  @Test func objectsOnAScheduler() async throws {
    let (file, line, log) = ("file", "line", Log())
    let measure: @Sendable (String) throws -> Int = { $0.count }
    let disk = SerialScheduler(name: "disk")  // an OperationQueue with maxConcurrentOperationCount 1

    disk.schedule { log.append(line) }  // an event, which runs later, on the scheduler
    let size = try await disk.run { try measure(file) }  // with a result
    #expect(size == 4 && log.lines.entries == ["line"])
    #expect(Library(on: disk).scheduler === disk && Printer().scheduler.name == "printer")
  }

  @Test func askingWhy() {
    let queue = OperationQueue()
    let (login, upload) = (operation("login"), operation("upload"))
    login ==> upload
    queue.addOperation(upload)
    print(queue.stallReport())  // why does my operation not run?
    let end = """
      “login” was never added to a queue or a group.
      “upload” waits for “login”, which was never added to a queue or a group.
      """
    #expect(queue.stallReport().description.hasSuffix(end))
    queue.addOperation(login)
  }
}
