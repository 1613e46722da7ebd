import Foundation

/// What is at a path.
enum FileKind {
  case file(size: Int)
  case folder
  /// A pipe, a device, a socket, or a symbolic link.
  case other

  init(ofPath path: String) throws {
    var status = stat()
    if unsafe lstat(path, &status) != 0 { throw Unreadable.bySystem }
    switch status.st_mode & S_IFMT {
    case S_IFREG: self = .file(size: Int(status.st_size))
    case S_IFDIR: self = .folder
    default: self = .other
    }
  }
}
