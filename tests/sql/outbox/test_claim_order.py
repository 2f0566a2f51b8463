"""O5: per tenant and key in order; a key that is blocked keeps no other."""

from __future__ import annotations

from tests.support.outbox_sql import PARKING, Claimed, OutboxSession


def test_events_of_a_key_come_in_their_order(outbox: OutboxSession) -> None:
    """Across batches of any size, whatever else there is."""
    outbox.emit_many([f"k{n % 7}" for n in range(200)], tenants=[f"t{n % 3}" for n in range(200)])
    relay = outbox.relay()
    got: list[Claimed] = []
    batch = outbox.exchange(relay, limit=1)
    sizes = [1, 2, 5, 30, 3]
    while batch.events:
        got += batch.events
        batch = outbox.exchange(relay, delivered=batch.numbers, limit=sizes[len(got) % 5])

    assert len(got) == 200
    for lane in {event.lane for event in got}:
        numbers = [event.number for event in got if event.lane == lane]
        assert numbers == sorted(numbers)


def test_what_commits_late_comes_before_what_began_after_it(outbox: OutboxSession, other_outbox: OutboxSession) -> None:
    """The low number becomes visible late: nothing newer that waits goes first (F-B15)."""
    relay = outbox.relay()
    other_outbox.connection.execute("BEGIN")
    [early] = other_outbox.emit("k")
    [overlapping] = outbox.emit("k")
    assert outbox.claim_events(relay) == [overlapping]
    other_outbox.connection.execute("COMMIT")
    [after] = outbox.emit("k")

    assert [event.number for event in outbox.drain(relay)] == [early, overlapping, after]


def test_a_batch_is_in_order_also_when_the_clock_went_back_over_midnight(outbox: OutboxSession) -> None:
    """Days are read one by one; the later number has the earlier day."""
    outbox.rows("UPDATE livewell_test.clock SET frozen_at = date_trunc('day', frozen_at, 'UTC') + interval '86401 s'")
    [first] = outbox.emit("k")
    outbox.advance(-3)
    [second] = outbox.emit("k")

    assert outbox.claim_events(outbox.relay()) == [first, second]


def test_a_key_that_failed_waits_and_others_flow(outbox: OutboxSession) -> None:
    bad, later = outbox.emit("bad", n=2)
    relay = outbox.relay()
    assert outbox.claim_events(relay) == [bad, later]
    [good] = outbox.emit("good")

    assert outbox.exchange(relay, failed=[bad]).numbers == [good]
    assert outbox.aside() == [bad, later]
    outbox.advance(2)
    assert outbox.exchange(relay, delivered=[good]).numbers == [bad]
    assert outbox.exchange(relay, delivered=[bad]).numbers == [later]
    assert outbox.exchange(relay, delivered=[later]).numbers == []
    assert (outbox.waiting(), outbox.blocks()) == ([], [])


def test_events_of_a_blocked_key_are_set_aside_once(outbox: OutboxSession) -> None:
    """No later claim reads past them: a row is updated once."""
    [bad] = outbox.emit("bad")
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.emit("bad", n=5)
    outbox.exchange(relay, failed=[bad])
    before = outbox.column("SELECT xmin::text FROM livewell.event_delivery ORDER BY number")
    for _ in range(3):
        outbox.emit("good")
        outbox.drain(relay)

    assert outbox.column("SELECT xmin::text FROM livewell.event_delivery ORDER BY number") == before


def test_what_is_behind_a_million_of_a_blocked_key_comes_at_once(outbox: OutboxSession) -> None:
    """A small million: the claim goes on until it finds something, or there is nothing."""
    [bad] = outbox.emit("bad")
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[bad], limit=0)
    outbox.emit_many(["bad"] * 3000)
    [good] = outbox.emit("good 17")
    outbox.rows("UPDATE livewell.event_delivery SET shard = 0")

    found = [outbox.claim_events(relay, 10) for _ in range(2)]

    assert [good] in found, found


def test_a_key_drains_in_order_and_new_events_wait_for_it(outbox: OutboxSession) -> None:
    """More than one helping of 32; what is emitted meanwhile comes last."""
    numbers = outbox.emit("k", n=80)
    relay = outbox.relay()
    outbox.claim_events(relay, 1)
    outbox.exchange(relay, failed=[numbers[0]], limit=0)
    outbox.exchange(relay)
    outbox.advance(2)
    got: list[int] = []
    batch = outbox.exchange(relay)
    while batch.events:
        got += batch.numbers
        if len(numbers) < 85:
            numbers += outbox.emit("k")
        batch = outbox.exchange(relay, delivered=batch.numbers)

    assert got == numbers


def test_an_earlier_event_that_commits_while_its_key_drains_is_not_lost(
    outbox: OutboxSession, other_outbox: OutboxSession
) -> None:
    other_outbox.connection.execute("BEGIN")
    [early] = other_outbox.emit("k")
    first, second = outbox.emit("k", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=[first], limit=0)
    other_outbox.connection.execute("COMMIT")
    outbox.exchange(relay)
    outbox.advance(2)

    assert sorted(event.number for event in outbox.drain(relay)) == [early, first, second]


def test_a_straggler_blocks_its_key_and_no_other(outbox: OutboxSession) -> None:
    """It is claimed by nobody a second time, and its key goes on when it has ended."""
    slow, behind = outbox.emit("slow", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay, 1)
    [good] = outbox.emit("good")

    assert outbox.exchange(relay, sending=[slow]).numbers == [good]
    assert outbox.exchange(relay, delivered=[good], sending=[slow]).numbers == []
    assert outbox.blocks() == [("sending", slow)]
    outbox.advance(100_000)
    assert outbox.exchange(relay, sending=[slow]).numbers == []
    assert outbox.exchange(relay, delivered=[slow]).numbers == [behind]


def test_a_straggler_that_was_given_up_goes_again_before_its_followers(outbox: OutboxSession) -> None:
    slow, behind = outbox.emit("slow", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay, 1)
    outbox.exchange(relay, sending=[slow])

    assert outbox.exchange(relay).numbers == [slow, behind]


def test_behind_a_failure_nothing_of_its_key_stays_on_its_way(outbox: OutboxSession) -> None:
    """The rest of the key was not sent; it goes back, and the pause of the failure holds.

    Seen failing: the key became `sending`, then `draining`, and was tried again at once.
    """
    bad, rest = outbox.emit("k", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay)

    outbox.exchange(relay, failed=[bad], sending=[rest])
    assert (outbox.blocks(), outbox.flying()) == ([("failed", bad)], [])
    assert outbox.exchange(relay, sending=[rest]).numbers == []
    assert outbox.exchange(relay).numbers == []
    outbox.advance(2)
    assert [event.number for event in outbox.drain(relay)] == [bad, rest]


def test_behind_a_dead_letter_that_parks_nothing_of_its_key_goes_on(outbox: OutboxSession) -> None:
    """Seen failing: what was still `sending` unparked the key."""
    dead, rest = outbox.emit("k", n=2, topic=PARKING)
    relay = outbox.relay()
    outbox.claim_events(relay)

    outbox.exchange(relay, refused=[dead], sending=[rest])
    outbox.exchange(relay)
    outbox.exchange(relay)
    assert (outbox.blocks(), outbox.drain(relay)) == ([("parked", dead)], [])


def test_a_paused_sink_gives_nothing_and_finishes(outbox: OutboxSession) -> None:
    one, two = outbox.emit("k", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay, 1)
    outbox.rows("UPDATE livewell.event_sink SET paused_at = livewell.now()")

    assert outbox.exchange(relay, delivered=[one]).numbers == []
    assert outbox.waiting() == [two]


def test_half_of_a_batch_is_left_for_what_is_new(outbox: OutboxSession) -> None:
    """However many keys have failed."""
    bad = outbox.emit_many([f"bad{n}" for n in range(50)])
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=bad, limit=0)
    outbox.advance(2)
    good = outbox.emit_many([f"good{n}" for n in range(50)])

    batch = outbox.claim_events(relay, 20)
    assert (len(set(batch) & set(bad)), len(set(batch) & set(good))) == (10, 10)


def test_a_batch_of_one_is_sometimes_new(outbox: OutboxSession) -> None:
    """A slow sink with many failing keys gets what is new as well."""
    bad = outbox.emit_many([f"bad{n}" for n in range(50)])
    relay = outbox.relay()
    outbox.claim_events(relay)
    outbox.exchange(relay, failed=bad, limit=0)
    outbox.advance(2)
    good = set(outbox.emit_many([f"good{n}" for n in range(50)]))

    claims = [outbox.claim_events(relay, 1) for _ in range(10)]
    assert all(len(claim) == 1 for claim in claims)
    assert any(set(claim) & good for claim in claims)
    assert any(set(claim) & set(bad) for claim in claims)


def test_unordered_sinks_wait_for_nothing(outbox: OutboxSession) -> None:
    outbox.sink(ordered=False)
    bad, other = outbox.emit("k", n=2)
    relay = outbox.relay()
    outbox.claim_events(relay, 1)

    assert outbox.exchange(relay, failed=[bad]).numbers == [other]
