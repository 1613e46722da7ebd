import Testing

/// Those that use the keys of the whole process, one after the other: pages say `"alert"` and mean others each.
@Suite(.serialized)
enum SharedDomainSnippets {}
