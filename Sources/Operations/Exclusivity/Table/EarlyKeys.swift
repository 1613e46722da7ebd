/// Tasks that request nothing but one key, with one limit: they hold the key and wait for it without entries in the table.
extension KeyTable {
  /// Before any other use of the table, they enter it, in their order. Most have left before.
  mutating func enterEarlyTasks() {
    if early.isEmpty { return }
    // The keys admit those that hold them, and no others, so this has no effects.
    var effects: [Effect] = []
    for key in early { for task in [key.first] + key.others { enter(task, &effects) } }
    early.removeAll(keepingCapacity: true)
  }

  /// Lets a task hold its key without an entry or, if it has the default priority, wait for it. Returns whether it holds
  /// the key. Nil if the task must enter the table.
  mutating func arriveEarly(_ task: TaskKeys, mayWait: () -> Bool) -> Bool? {
    // A throttled key has two claims.
    guard task.claims.count == 1, task.claims[0].weight == 1 else { return nil }
    if task.isInsideOther, task.enclosing.contains(where: { _ in true }) { return nil }
    let (id, limit) = (task.claims[0].id, task.claims[0].limit)
    // Comparing up to 32 keys takes less time than hashing one.
    guard let key = early.firstIndex(where: { $0.first.claims[0].id == id }) else {
      if early.count == 32 || id.limit < .max || useIndices[id] != nil { return nil }
      early.append((task, []))
      task.didTakeKeys()
      return true
    }
    let isFree = early[key].others.count < limit - 1
    guard isFree || mayWait(), early[key].first.claims[0].limit == limit else { return nil }
    // All of them may have to enter at once, under the lock.
    if early[key].others.count == 1_000 { return nil }
    early[key].others.append(task)
    if isFree { task.didTakeKeys() } else { task.began = .now }
    return isFree
  }

  /// Ends a task that holds its key without an entry. Returns the next holder, which the caller resumes.
  mutating func leaveEarly(_ task: TaskKeys) -> TaskKeys? {
    let limit = task.claims[0].limit
    for key in early.indices.reversed() {
      if early[key].first === task {
        if early[key].others.isEmpty {
          early.remove(at: key)
          return nil
        }
        early[key].first = early[key].others.removeFirst()
      } else if let position = early[key].others.prefix(limit - 1).firstIndex(where: { $0 === task }) {
        early[key].others.remove(at: position)
      } else {
        continue
      }
      if early[key].others.count < limit - 1 { return nil }
      let next = limit == 1 ? early[key].first : early[key].others[limit - 2]
      next.didTakeKeys()
      return next
    }
    return nil
  }
}
