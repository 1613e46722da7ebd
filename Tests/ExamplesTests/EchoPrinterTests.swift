import Testing

struct EchoPrinterTests {
  @Test func aFewLines_printWhatThePageShows() async throws {
    let command = "printf 'a\\n\\nprefix >\\nb\\nq\\nc\\n' | "
    let expected = try #require(try Transcripts()[command + "swift run EchoPrinter"])
    try await Shell.open { shell in
      let outcome = try await shell.run(command + "EchoPrinter")
      #expect(outcome.output == expected)
    }
  }

  @Test func noInput_printsNothing() async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run("EchoPrinter < /dev/null")
      #expect(outcome.output.isEmpty)
    }
  }

  @Test func lastLineWithoutAnEnd_isPrinted() async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run("printf 'a\\nb' | EchoPrinter")
      #expect(outcome.output == "out a\nout b\n")
    }
  }

  @Test func tenMillionCharactersInOneLine_arePrinted() async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run(
        """
        { head -c 10000000 /dev/zero | tr '\\0' x; echo; } > long
        { printf 'out '; cat long; } > expected
        EchoPrinter < long | cmp - expected
        """
      )
      #expect(outcome.status == 0)
    }
  }

  @Test func twentyThousandLines_keepTheirOrder_everyTime() async throws {
    try await Shell.open { shell in
      _ = try await shell.run("seq 20000 | sed 's/^/out /' > expected")
      for _ in 0..<5 {
        let outcome = try await shell.run("seq 20000 | EchoPrinter | cmp - expected")
        #expect(outcome.status == 0)
      }
    }
  }

  @Test(.enabled(if: Shell.isLinux)) func outputThatCannotBeWritten_fails() async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run("echo a | EchoPrinter > /dev/full")
      #expect(outcome.status == 1)
      #expect(!outcome.errors.isEmpty)
    }
  }
}
