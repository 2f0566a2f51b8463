"""Topics and sinks find each other, whichever is declared first."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.outbox_sql import PARKING, SINK, TOPIC, OutboxSession

ROUTES = "SELECT s.name, r.topic FROM livewell.event_route r JOIN livewell.event_sink s ON s.id = r.sink ORDER BY 1, 2"


def test_a_route_is_made_from_both_sides(outbox: OutboxSession) -> None:
    outbox.sink("late", topics=["orders.*"])
    outbox.topic("orders.sent")
    outbox.topic("users.new")

    assert [row[1] for row in outbox.rows(ROUTES) if row[0] == "late"] == [TOPIC, PARKING, "orders.sent"]
    assert [row[1] for row in outbox.rows(ROUTES) if row[0] == SINK] == [TOPIC, PARKING, "orders.sent", "users.new"]


def test_a_sink_that_takes_less_loses_its_routes(outbox: OutboxSession) -> None:
    """What waits for it stays."""
    [number] = outbox.emit("k")
    outbox.sink(topics=[PARKING])

    assert [row[1] for row in outbox.rows(ROUTES)] == [PARKING]
    assert outbox.waiting() == [number]


def test_declaring_again_writes_nothing(outbox: OutboxSession) -> None:
    """An app that opens does not touch what is so already."""
    before = outbox.rows(
        "SELECT xmin::text FROM livewell.event_sink UNION ALL SELECT xmin::text FROM livewell.event_topic"
    )
    outbox.sink()
    assert outbox.topic(TOPIC) is False

    assert before == outbox.rows(
        "SELECT xmin::text FROM livewell.event_sink UNION ALL SELECT xmin::text FROM livewell.event_topic"
    )


def test_a_change_keeps_the_id_and_the_pause(outbox: OutboxSession) -> None:
    outbox.rows("UPDATE livewell.event_sink SET paused_at = livewell.now()")
    before = outbox.rows("SELECT id, paused_at FROM livewell.event_sink")
    outbox.sink(attempts=3)

    assert outbox.rows("SELECT id, paused_at FROM livewell.event_sink") == before
    assert outbox.column("SELECT attempts FROM livewell.event_sink") == [3]


def test_a_topic_keeps_what_is_not_said(outbox: OutboxSession) -> None:
    assert outbox.topic(PARKING, payload_bytes_max=10) is True

    assert outbox.rows("SELECT on_dead, payload_bytes_max FROM livewell.event_topic WHERE name = %s", PARKING) == [
        ("park", 10)
    ]


@pytest.mark.parametrize(
    ("name", "options"),
    [("1st", {}), ("", {}), ("a b", {}), ("ok", {"on_dead": "stop"}), ("ok", {"payload_bytes_max": 0})],
)
def test_a_bad_topic_is_refused(outbox: OutboxSession, name: str, options: dict[str, object]) -> None:
    with pytest.raises(psycopg.Error) as caught:
        outbox.topic(name, **options)
    assert caught.value.sqlstate == "LW003"


@pytest.mark.parametrize(
    ("topic", "patterns", "fits"),
    [
        ("orders.created", ["orders.*"], True),
        ("orders.created", ["*"], True),
        ("orders.created", ["orders"], False),
        ("orders.created", ["orders._reated"], False),
        ("orders_created", ["orders.*"], False),
    ],
)
def test_patterns(outbox: OutboxSession, topic: str, patterns: list[str], fits: bool) -> None:
    """A dot and an underscore are themselves."""
    assert outbox.value("SELECT livewell.topic_matches(%s, %s)", topic, patterns) is fits


def test_a_sink_has_all_its_shards(outbox: OutboxSession) -> None:
    assert outbox.column("SELECT count(*) FROM livewell.relay_shard GROUP BY sink") == [64]
