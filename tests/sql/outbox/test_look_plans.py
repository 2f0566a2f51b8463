"""Looking at a full outbox reads a bounded number of rows, each by its index."""

from __future__ import annotations

import pytest

from tests.support.outbox_sql import PARKING, SINK, TOPIC, OutboxSession
from tests.support.plans import Plan, PlanRecorder, rows_read, sequential

LARGE = {"event_delivery", "event_block", "dead_event", "event_sent"}

FILL = [
    (
        "INSERT INTO livewell.event (number, created_at, day, topic, tenant, key, payload) SELECT n, livewell.now(), "
        "(livewell.now() AT TIME ZONE 'UTC')::date, %s, 't' || n %% 50, 'k' || n %% 3000, '{}' "
        "FROM generate_series(1, 30000) AS n"
    ),
    (
        "INSERT INTO livewell.event_delivery (number, key_hash, day, tenant_hash, sink, shard, aside) "
        "SELECT e.number, e.number %% 3000, e.day, hashtext(e.tenant), s.id, e.number %% 3000 & 63, e.number %% 3 = 0 "
        "FROM livewell.event e, livewell.event_sink s WHERE e.topic = %s AND e.number <= 28000"
    ),
    (
        "INSERT INTO livewell.event_block (key_hash, number, retry_at, since, sink, shard, state) "
        "SELECT n * 3, n * 3, 'infinity', livewell.now(), s.id, (n * 3) & 63, 'parked' "
        "FROM generate_series(1, 999) AS n, livewell.event_sink s WHERE %s <> ''"
    ),
    (
        "INSERT INTO livewell.dead_event (number, key_hash, died_at, day, tenant_hash, sink, shard, attempt, lost, "
        "parks, topic, reason) SELECT e.number, e.number, livewell.now(), e.day, 0, s.id, 0, 1, 0, false, e.topic, "
        "'refused' FROM livewell.event e, livewell.event_sink s WHERE e.topic = %s AND e.number > 28000"
    ),
]


@pytest.fixture
def recorder(outbox: OutboxSession) -> PlanRecorder:
    """28,000 deliveries of 50 tenants, 999 parked keys, 2,000 dead letters."""
    for statement in FILL:
        outbox.rows(statement, TOPIC)
    outbox.topic(PARKING)
    return PlanRecorder(outbox)


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT * FROM livewell.list_sinks()", 10_001),
        (f"SELECT * FROM livewell.list_lag('{SINK}', 10)", 50_000),
        (f"SELECT * FROM livewell.fair_share('{SINK}')", 4_200),
        ("SELECT * FROM livewell.list_blocks(NULL, 'parked', NULL, 10)", 10_000),
        (f"SELECT * FROM livewell.list_dead_events('{SINK}', NULL, NULL, 28100, '{SINK}', 10)", 20),
        ("SELECT * FROM livewell.group_dead_events(10)", 10_001),
        ("SELECT * FROM livewell.show_event('500')", 20),
        ("SELECT * FROM livewell.why_event('500', NULL)", 20),
        (f"SELECT livewell.sink_is_idle('{SINK}')", 20),
        (f"SELECT livewell.redrive_dead_events('{SINK}', '{{28001, 28002}}')", 20),
    ],
)
def test_a_look_is_bounded_and_by_index(recorder: PlanRecorder, query: str, most: int) -> None:
    """Seen failing for why_event: all 999 blocks of the sink were read."""
    plans: list[Plan] = []
    for _ in range(7):  # plpgsql changes to a generic plan after five
        plans += recorder.plans(query)

    assert sequential(plans) & LARGE == set()
    assert {name for name in sequential(plans) if name.startswith("event_2")} == set()
    assert max(rows_read(plans, table) for table in LARGE) <= most
