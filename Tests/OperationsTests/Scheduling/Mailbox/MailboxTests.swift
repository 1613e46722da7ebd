import Testing

@testable import Operations

@Suite final class MailboxTests {
  private let origin = EventOrigin()
  private var mailbox = Mailbox(EventCapacity(1, whenFull: .suspend))
  private let segment: Int

  init() { segment = mailbox.open() }

  private func accept(_ ticket: EventTicket) -> (Mailbox.Acceptance, dropped: Int) {
    var body: EventTicket.Body? = { _ in }
    let (acceptance, dropped) = mailbox.accept(ticket, &body)
    return (acceptance, dropped == nil ? 0 : 1)
  }

  @Test func stormUnderOneKeyNeedsLittleRoom() {
    var event: (@Sendable () -> Void)? = {}
    _ = mailbox.post(&event, origin)
    for _ in 0..<10_000 { _ = accept(EventTicket(origin, key: EventKey(object: nil, name: "key"))) }
    #expect(mailbox.eventsAccepted == 2)
    #expect(mailbox.eventsCoalesced == 9_999)
    var batch = Mailbox.Batch()
    _ = mailbox.refill(&batch, from: segment)
    for _ in 0..<2 { _ = batch.next() }
    #expect(batch.isEmpty)
  }

  @Test func newerEventUnderAKey_takesOverTheRoomThoughAnotherIsSuspended() {
    let tickets = (0..<2).map { _ in EventTicket(origin, key: EventKey(object: nil, name: "key"), capacity: .counted) }
    #expect(accept(tickets[0]).0 == .accepted)
    #expect(accept(EventTicket(origin, capacity: .suspending())).0 == .suspended)
    #expect(accept(tickets[1]) == (.accepted, dropped: 1))
    #expect(tickets[0].isWaiting)
    #expect(!mailbox.canAcceptSuspended)
  }

  @Test func suspendedEventsAreNotOvertaken() {
    let tickets = (0..<2).map { _ in EventTicket(origin, capacity: .suspending()) }
    #expect(tickets.map { accept($0).0 } == [.accepted, .suspended])
    #expect(mailbox.claim(tickets[0]) != nil && mailbox.canAcceptSuspended)
    #expect(accept(EventTicket(origin, capacity: .counted)).0 == .full)
    _ = mailbox.acceptSuspended()
    #expect(tickets[1].isWaiting)
  }

  @Test func timerThatWasCancelledTooLateChangesNothing() {
    mailbox.delay(EventTicket(origin), { _ in }, until: .seconds(10))
    let first = mailbox.alarmChange()?.new
    mailbox.delay(EventTicket(origin), { _ in }, until: .seconds(5))
    let second = mailbox.alarmChange()?.new
    #expect(first?.deadline == .seconds(10) && second?.deadline == .seconds(5))
    let before = mailbox.eventsAccepted
    mailbox.acceptDue(at: .seconds(10), by: first?.timer ?? ClockTimer())
    #expect(mailbox.eventsAccepted == before)
    let isUnchanged = mailbox.alarmChange() == nil
    #expect(isUnchanged)
    mailbox.acceptDue(at: .seconds(10), by: second?.timer ?? ClockTimer())
    #expect(mailbox.eventsAccepted == before + 2)
  }
}
