import Foundation

/// A path in the file system, in bytes that need not be UTF-8.
///
/// `FileManager` returns only names that are UTF-8.
struct FilePath: Sendable, CustomStringConvertible {
  /// What is at a path.
  enum Kind {
    case file(size: Int)
    case folder
    /// A pipe, a device, a socket, or a symbolic link.
    case other
  }

  private let bytes: [UInt8]

  init(_ path: String) { bytes = Array(path.utf8) }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  /// The path with replacement characters for what is not UTF-8.
  var description: String { String(decoding: bytes, as: UTF8.self) }

  /// Returns what is at the path, without following symbolic links.
  func kind() throws -> Kind {
    var status = stat()
    if unsafe lstat(characters, &status) != 0 { throw Unreadable.lastSystemError }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .file(size: Int(status.st_size))
    case S_IFDIR: return .folder
    default: return .other
    }
  }

  /// Returns the path without symbolic links.
  func resolved() throws -> FilePath {
    guard let path = unsafe realpath(characters, nil) else { throw Unreadable.lastSystemError }
    defer { unsafe free(path) }
    return FilePath(bytes: unsafe UnsafeBufferPointer(start: path, count: strlen(path)).map(UInt8.init(bitPattern:)))
  }

  /// Returns the paths of the files and folders in the folder.
  func contents() throws -> [FilePath] {
    guard let folder = unsafe fdopendir(try open(O_DIRECTORY)) else { throw Unreadable.lastSystemError }
    defer { unsafe closedir(folder) }
    let prefix = bytes.last == UInt8(ascii: "/") ? bytes : bytes + [UInt8(ascii: "/")]
    var paths: [FilePath] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(folder) else { break }
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { unsafe Array($0.prefix { $0 != 0 }) }
      if name != Array(".".utf8), name != Array("..".utf8) { paths.append(FilePath(bytes: prefix + name)) }
    }
    if errno != 0 { throw Unreadable.lastSystemError }
    return paths
  }

  /// Opens what is at the path for reading.
  ///
  /// Follows no symbolic link, because one may have replaced the file or folder since `kind()` was called.
  func open(_ flags: Int32) throws -> Int32 {
    let descriptor = unsafe Foundation.open(characters, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags)
    if descriptor < 0 { throw Unreadable.lastSystemError }
    return descriptor
  }

  /// The path for system calls.
  private var characters: [CChar] { bytes.map(CChar.init(bitPattern:)) + [0] }
}
