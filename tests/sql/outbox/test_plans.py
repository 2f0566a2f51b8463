"""O4, F-B17: claims and finishes read what the batch asks for, whatever the statistics say.

Of an empty table, fresh, or stale by a factor of twenty. Each call is made seven times, because
plpgsql changes to a generic plan after five.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from livewell.db import scratch
from tests.support.outbox_sql import SINK, OutboxSession
from tests.support.plans import Plan, PlanRecorder, indexes, rows_read, sequential

TIMES = 7
BATCH = 50
TOKEN = UUID(int=7)
LIVE = ("event_delivery", "event_block", "event_flight")

# Of ten tenants one has nearly all; a tenth of the keys is blocked, and their events are set aside.
FILL = """
INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard, aside)
SELECT n, n / 10, livewell.now()::date, CASE WHEN n %% 50 = 0 THEN n %% 10 ELSE 99 END, s.id, (n / 10) & 63,
    (n / 10) %% 10 = 0
FROM generate_series(%s::int, %s::int) AS n CROSS JOIN livewell.event_sink s
"""
FILL_EVENTS = """
INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload)
SELECT d.number, livewell.now(), d.day, 'orders.created', '', 'k', '{}'
FROM livewell.event_delivery d JOIN livewell.event_sink s ON s.id = d.sink WHERE s.name = 'shop'
"""
FILL_BLOCKS = """
INSERT INTO livewell.event_block (key_hash, number, retry_at, since, sink, shard, state)
SELECT DISTINCT ON (d.sink, d.key_hash) d.key_hash, d.number,
    livewell.now() + CASE WHEN d.key_hash % 100 = 0 THEN interval '0' ELSE interval '1 hour' END, livewell.now(), d.sink,
    d.shard, 'failed'::livewell.block_state
FROM livewell.event_delivery d WHERE d.aside ORDER BY d.sink, d.key_hash, d.number
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """How many deliveries for each sink, and what the planner was told before they came."""

    name: str
    rows: int
    analyze_at: tuple[int, ...]


CONDITIONS = [
    Condition("statistics of an empty table, 10k rows", 10_000, (0,)),
    Condition("fresh statistics, 10k rows", 10_000, (10_000,)),
    Condition("statistics of 5k, 100k rows", 100_000, (5_000,)),
    Condition("fresh statistics, 100k rows", 100_000, (100_000,)),
]


@dataclass(frozen=True, slots=True)
class Filled:
    """A database under one condition, and a relay with all shards."""

    session: OutboxSession
    recorder: PlanRecorder
    relay: int


@pytest.fixture(scope="module", params=CONDITIONS, ids=lambda condition: condition.name)
def filled(request: pytest.FixtureRequest, livewell_server: str, livewell_template: str) -> Iterator[Filled]:
    condition: Condition = request.param
    name = f"livewell_test_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    with OutboxSession(dsn) as session:
        for table in LIVE:  # it would mend the statistics we want to be wrong
            session.rows(f"ALTER TABLE livewell.{table} SET (autovacuum_enabled = off)")
        session.reset()
        session.sink("outbox", outside=True)
        done = 0
        for size in sorted({*condition.analyze_at, condition.rows}):
            session.rows(FILL, done + 1, size)
            done = size
            if size in condition.analyze_at:
                session.rows("ANALYZE livewell.event_delivery")
        session.rows(FILL_EVENTS)
        session.rows(FILL_BLOCKS)
        if condition.rows in condition.analyze_at:
            session.rows("ANALYZE livewell.event_block, livewell.event")
        session.rows("SELECT setval('livewell.event_number_seq', %s)", 10_000_000)
        yield Filled(session, PlanRecorder(session), session.relay())
    scratch.drop(livewell_server, name)


EXCHANGE = "SELECT * FROM livewell.exchange_events(%s, %s, %s, %s, %s, '{}', %s)"


def held(filled: Filled) -> list[int]:
    return filled.session.claim_events(filled.relay, BATCH)


def claim(filled: Filled) -> list[Plan]:
    return filled.recorder.plans(EXCHANGE, filled.relay, [], [], [], [], BATCH)


def finish(filled: Filled) -> list[Plan]:
    numbers = held(filled)
    verdicts, nothing = ["delivered"] * len(numbers), [None] * len(numbers)
    return filled.recorder.plans(EXCHANGE, filled.relay, numbers, verdicts, nothing, nothing, 0)


def fail(filled: Filled) -> list[Plan]:
    numbers = held(filled)[:10]
    verdicts, nothing = ["failed"] * len(numbers), [None] * len(numbers)
    return filled.recorder.plans(EXCHANGE, filled.relay, numbers, verdicts, nothing, nothing, 0)


def send_on(filled: Filled) -> list[Plan]:
    numbers = held(filled)[:10]
    query = "SELECT * FROM livewell.exchange_events(%s, '{}', '{}', '{}', '{}', %s, %s)"
    return filled.recorder.plans(query, filled.relay, numbers, BATCH)


def beat(filled: Filled) -> list[Plan]:
    held(filled)
    return filled.recorder.plans("SELECT * FROM livewell.renew_relay(%s, 45, NULL, NULL)", filled.relay)


def claim_outside(filled: Filled) -> list[Plan]:
    return filled.recorder.plans("SELECT * FROM livewell.outbox_claim(%s, %s)", BATCH, TOKEN)


def mark_outside(filled: Filled) -> list[Plan]:
    ids = filled.session.outside_claim(TOKEN, BATCH)
    return filled.recorder.plans("SELECT livewell.outbox_mark_delivered(%s, %s::bigint[])", TOKEN, ids)


def emit(filled: Filled) -> list[Plan]:
    return filled.recorder.plans("SELECT livewell.emit_event('orders.created', '{}', 'k')")


# What is called, the indexes it must use, and the most rows of the deliveries that one scan of it
# may touch: with a batch of 50, shares of 64 places twice over.
HOT: dict[str, tuple[Callable[[Filled], list[Plan]], set[str], int]] = {
    "claim": (claim, {"event_delivery_ready_idx", "event_delivery_aside_idx"}, 600),
    "finish": (finish, {"event_delivery_pkey"}, 3 * BATCH),
    "fail": (fail, {"event_delivery_pkey"}, 3 * BATCH),
    "send on": (send_on, {"event_delivery_pkey"}, 1000),
    "beat": (beat, set(), 3 * BATCH),
    # A look over all free shards; once in a while the planner reads 16,640 of 100,000 for it.
    "outbox_claim": (claim_outside, {"event_delivery_ready_idx"}, 400 * BATCH),
    "outbox_mark": (mark_outside, {"event_delivery_pkey"}, 20 * BATCH),
    "emit_event": (emit, {"event_route_pkey"}, 10),
}


def findings(filled: Filled, name: str) -> list[str]:
    """What is wrong with any of seven calls in a row."""
    call, wanted, most = HOT[name]
    found: list[str] = []
    for time in range(TIMES):
        plans = call(filled)
        if missing := wanted - indexes(plans):
            found.append(f"call {time}: {sorted(missing)} not used, but {sorted(indexes(plans))}")
        if "event_delivery" in sequential(plans):
            found.append(f"call {time}: the deliveries are read from end to end")
        if (read := rows_read(plans, "event_delivery")) > most:
            found.append(f"call {time}: one scan touched {read} rows; {most} are enough")
    return found


@pytest.mark.parametrize("name", HOT)
def test_the_named_index_serves_it(filled: Filled, name: str) -> None:
    """And no scan touches more rows than the work asks for."""
    assert findings(filled, name) == []


def test_a_lost_index_is_noticed(filled: Filled) -> None:
    """The rule above can fail."""
    with filled.session.connection.transaction(force_rollback=True):
        filled.session.rows("DROP INDEX livewell.event_delivery_ready_idx")

        assert findings(filled, "claim") != []


def test_the_sink_under_test_is_the_one_that_is_filled(filled: Filled) -> None:
    """With all its shards."""
    assert filled.session.value("SELECT name FROM livewell.event_sink ORDER BY id LIMIT 1") == SINK
    assert filled.session.shards(filled.relay) == 64
