// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InferIsolatedConformances"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("ImmutableWeakCaptures"),
  .strictMemorySafety(),
]

let package = Package(
  name: "swift-operations",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Operations", targets: ["Operations"]),
    .library(name: "OperationsTestSupport", targets: ["OperationsTestSupport"]),
  ],
  targets: [
    .target(name: "Operations", swiftSettings: settings),
    .target(name: "OperationsTestSupport", dependencies: ["Operations"], swiftSettings: settings),
    .target(
      name: "Soak",
      dependencies: ["Operations", "OperationsTestSupport"],
      path: "Tests/Soak",
      swiftSettings: settings
    ),
    .target(
      name: "LocalServer",
      dependencies: ["OperationsTestSupport"],
      path: "Tests/LocalServer",
      swiftSettings: settings
    ),
    .testTarget(
      name: "OperationsTests",
      dependencies: ["Operations", "OperationsTestSupport", "Soak"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "MainActorModuleTests",
      dependencies: ["Operations"],
      swiftSettings: settings + [.defaultIsolation(MainActor.self)]
    ),
    .testTarget(
      name: "ExamplesTests",
      dependencies: [
        "OperationsTestSupport", "LocalServer", "HelloWorld", "WordCount", "LinkCheck", "Dialogs", "EchoPrinter",
        "Feed",
        "PhotoUpload", "Pipeline",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "DocumentationTests",
      dependencies: ["Operations", "OperationsTestSupport"],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "Benchmarks",
      dependencies: ["Operations", "OperationsTestSupport", "Soak"],
      path: "Tests/Benchmarks",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "Instructions",
      dependencies: ["Operations"],
      path: "Tests/Instructions",
      swiftSettings: settings
    ),
    .target(name: "ExampleSupport", path: "Examples/Support", swiftSettings: settings),
    .executableTarget(
      name: "HelloWorld",
      dependencies: ["Operations"],
      path: "Examples/HelloWorld",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "WordCount",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/WordCount",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "LinkCheck",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/LinkCheck",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "Dialogs",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/Dialogs",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "EchoPrinter",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/EchoPrinter",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "Feed",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/Feed",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "PhotoUpload",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/PhotoUpload",
      swiftSettings: settings
    ),
    .executableTarget(
      name: "Pipeline",
      dependencies: ["Operations", "ExampleSupport"],
      path: "Examples/Pipeline",
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

// `.ci/run` builds the library and its tests for the thread sanitizer, and nothing else.
if Context.environment["ONLY_LIBRARY_TESTS"] != nil {
  let others = ["DocumentationTests", "ExamplesTests", "ExampleSupport", "LocalServer"]
  package.targets.removeAll { $0.type == .executable || others.contains($0.name) }
}
