"""O2, O3: claimers outside, by token; the promises of a relay without one."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from tests.support.outbox_sql import PARKING, OutboxSession

A, B = uuid4(), uuid4()


@pytest.fixture
def outside(outbox: OutboxSession) -> OutboxSession:
    """The one sink is claimed from outside."""
    outbox.rows("DELETE FROM livewell.event_route")
    outbox.rows("DELETE FROM livewell.relay_shard")
    outbox.rows("DELETE FROM livewell.event_sink")
    outbox.sink("outbox", outside=True)
    return outbox


def test_oldest_first_with_the_token_beside_it(outside: OutboxSession) -> None:
    numbers = outside.emit_many([None] * 3)
    rows = outside.rows("SELECT id, event_id, attempts, processing_token FROM livewell.outbox_claim(10, %s)", A)

    assert [(row[0], row[2], row[3]) for row in rows] == [(number, 1, A) for number in numbers]
    assert rows[0][1].endswith(f"-{numbers[0]}")


def test_claims_are_disjoint(outside: OutboxSession) -> None:
    numbers = outside.emit_many([None] * 20)
    first, second = outside.outside_claim(A, 5), outside.outside_claim(B, 5)

    assert (len(first), len(second), len({*first, *second} & set(numbers))) == (5, 5, 10)


def test_a_key_is_with_one_at_a_time(outside: OutboxSession) -> None:
    one, two, three = outside.emit("k", n=3)

    assert outside.outside_claim(A, 1) == [one]
    assert outside.outside_claim(B, 10) == []
    assert outside.mark_delivered(A, [one]) == 1
    assert outside.outside_claim(B, 10) == [two, three]


def test_only_the_token_that_holds_them_marks(outside: OutboxSession) -> None:
    numbers = outside.emit_many([None] * 3)
    outside.outside_claim(A)

    assert outside.mark_delivered(B, numbers) == 0
    assert outside.mark_delivered(A, [*numbers, 10**9]) == 3
    assert outside.mark_delivered(A, numbers) == 0
    assert outside.waiting() == []


def test_the_count_is_of_events_and_not_of_ids(outside: OutboxSession) -> None:
    """An id twice counts once; a NULL is nobody and frees nothing."""
    numbers = outside.emit_many([None] * 3)
    outside.outside_claim(A)

    assert outside.mark_delivered(A, [numbers[0], numbers[0], None]) == 1
    assert outside.flying() == numbers[1:]
    assert outside.mark_delivered(A, []) == 0


def test_a_failed_one_twice_in_a_call_is_one_dead_letter(outside: OutboxSession) -> None:
    """One that is given twice is an error of nobody."""
    outside.sink("outbox", outside=True, attempts=1)
    [number] = outside.emit("k")
    outside.outside_claim(A)

    assert outside.mark_failed(A, [number, number]) == 1
    assert outside.letters() == [(number, "attempts", False)]


def test_what_failed_comes_again_after_its_pause(outside: OutboxSession) -> None:
    bad, later = outside.emit("k", n=2)
    outside.outside_claim(A)
    assert outside.mark_failed(A, [bad]) == 1

    assert outside.outside_claim(A) == []
    assert outside.mark_delivered(A, [later]) == 0  # it went back with the failure before it
    outside.advance(2)
    assert outside.outside_claim(B) == [bad]
    assert outside.column("SELECT attempt FROM livewell.event_delivery ORDER BY number") == [1, 0]


def test_a_parked_key_stays_parked_whatever_else_is_marked(outside: OutboxSession) -> None:
    """Seen failing: marking the next one of the key let all go."""
    outside.sink("outbox", outside=True, attempts=1)
    dead, held = outside.emit("k", n=2, topic=PARKING)
    outside.outside_claim(A)
    outside.mark_failed(A, [dead])
    outside.mark_delivered(A, [held])

    outside.advance(1000)
    assert outside.outside_claim(B) == []
    assert outside.blocks() == [("parked", dead)]


def test_a_claim_is_a_lease(outside: OutboxSession) -> None:
    """A minute for a quick one, and not a quarter of an hour for whoever was first."""
    numbers = outside.emit("k", n=2)
    assert outside.outside_claim(A) == numbers
    outside.advance(59)
    assert outside.outside_claim(B) == []
    outside.advance(2)

    assert outside.outside_claim(B) == numbers
    assert outside.mark_delivered(A, numbers) == 0
    assert outside.mark_delivered(B, numbers) == 2


def test_a_second_claim_gives_only_more(outside: OutboxSession) -> None:
    """What the token holds is not given a second time, and is not forgotten."""
    numbers = outside.emit_many([f"k{n}" for n in range(10)])
    first = outside.outside_claim(A, 4)
    more = [number for _ in range(3) for number in outside.outside_claim(A, 4)]

    assert sorted(first + more) == numbers
    assert outside.mark_delivered(A, numbers) == 10


def test_shards_of_which_nothing_was_claimed_are_free_for_others(outside: OutboxSession) -> None:
    """A token that is used once does not keep them until its lease runs out."""
    outside.emit_many([f"k{n}" for n in range(10)])
    outside.rows("UPDATE livewell.event_sink SET paused_at = livewell.now()")
    assert outside.outside_claim(A) == []
    outside.rows("UPDATE livewell.event_sink SET paused_at = NULL")

    assert len(outside.outside_claim(B)) == 10


def test_one_tenant_only(outside: OutboxSession) -> None:
    """And other tenants' events are in nobody's way."""
    outside.emit_many([f"k{n}" for n in range(50)], tenants=["big"] * 50)
    mine = outside.emit("k", n=3, tenant="small")

    assert outside.outside_claim(A, 10, tenant="small") == mine


def test_the_answer_is_in_the_order_of_each_key_whatever_the_clock_did(outside: OutboxSession) -> None:
    one = outside.emit("k")
    outside.advance(-100)
    two = outside.emit("k")

    assert outside.outside_claim(A) == one + two


@pytest.mark.parametrize(("limit", "token"), [(0, A), (5001, A), (10, None)])
def test_limit_and_token_have_bounds(outside: OutboxSession, limit: int, token: object) -> None:
    with pytest.raises(psycopg.Error) as caught:
        outside.rows("SELECT * FROM livewell.outbox_claim(%s, %s)", limit, token)
    assert caught.value.sqlstate == "LW003"


def test_without_a_sink_the_answer_says_how_to_declare_one(outbox: OutboxSession) -> None:
    with pytest.raises(psycopg.Error, match="livewell outbox sinks declare outbox --outside"):
        outbox.outside_claim(A)
