/// Tasks that request nothing but one key, with one limit: they hold the key and wait for it without entries in the table.
extension KeyTable {
  /// Before any other use of the table, they enter it, in their order. Most have left before.
  mutating func enterEarlyTasks() {
    if early.isEmpty { return }
    // The keys admit those that hold them, and no others, so this has no effects.
    var effects: [Effect] = []
    for key in early { for task in key.tasks { enter(task, &effects) } }
    early.removeAll(keepingCapacity: true)
  }

  /// Lets a task hold its key without an entry or, if it has the default priority, wait for it. Returns whether it holds
  /// the key. Nil if the task must enter the table.
  mutating func arriveEarly(_ task: TaskKeys, mayWait: Bool) -> Bool? {
    // A throttled key has two claims.
    guard task.claims.count == 1, task.claims[0].weight == 1 else { return nil }
    if task.isInsideOther, task.enclosing.contains(where: { _ in true }) { return nil }
    let (id, limit) = (task.claims[0].id, task.claims[0].limit)
    // Comparing up to 32 keys takes less time than hashing one.
    guard let key = early.firstIndex(where: { $0.id == id }) else {
      if early.count == 32 || id.limit < .max || useIndices[id] != nil { return nil }
      early.append((id, limit, [task]))
      task.didTakeKeys()
      return true
    }
    let isFree = early[key].tasks.count < limit
    // All of them may have to enter at once, under the lock.
    guard isFree || mayWait, early[key].limit == limit, early[key].tasks.count < 1_000 else { return nil }
    early[key].tasks.append(task)
    if isFree { task.didTakeKeys() }
    return isFree
  }

  /// Ends a task that holds its key without an entry. Returns the next holder, which the caller resumes.
  mutating func leaveEarly(_ task: TaskKeys) -> TaskKeys? {
    for key in early.indices.reversed() {
      let limit = early[key].limit
      guard let position = early[key].tasks.prefix(limit).firstIndex(where: { $0 === task }) else { continue }
      early[key].tasks.remove(at: position)
      if early[key].tasks.isEmpty {
        early.remove(at: key)
      } else if early[key].tasks.count >= limit {
        early[key].tasks[limit - 1].didTakeKeys()
        return early[key].tasks[limit - 1]
      }
      return nil
    }
    return nil
  }
}
