"""livewell.outbox_debezium: events under the names that Debezium's outbox router uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.queue_sql import QueueSession

# The router's defaults: table.field.event.id, .key, .type, .payload, and route.by.field.
ROUTER = {"id", "aggregateid", "type", "payload", "aggregatetype"}


@pytest.fixture
def sql(livewell_dsn: str) -> Iterator[QueueSession]:
    with QueueSession(livewell_dsn) as session:
        yield session


def test_every_event_has_the_columns_of_the_router(sql: QueueSession) -> None:
    """The id is that of the relay's deliveries, so a receiver drops duplicates across a switch."""
    for topic in ("shop.orders.created", "orders"):
        sql.rows("SELECT livewell.declare_topic(%s)", topic)
    first = sql.value("SELECT livewell.emit_event('shop.orders.created', '{\"n\":  1.0}', '42', 'acme')")
    second = sql.value("SELECT livewell.emit_event('orders', 'null')")

    rows = sql.rows(
        "SELECT aggregatetype, aggregateid, type, payload::text, id, tenant FROM livewell.outbox_debezium "
        "ORDER BY created_at, id"
    )

    assert rows == [
        ("shop.orders", "42", "shop.orders.created", '{"n":  1.0}', first, "acme"),
        ("orders", None, "orders", "null", second, ""),
    ]
    columns = set(
        sql.column("SELECT attname::text FROM pg_attribute WHERE attrelid = 'livewell.outbox_debezium'::regclass")
    )
    assert columns >= ROUTER
    assert columns - ROUTER == {"tenant", "created_at"}


def test_operators_and_readers_may_read_it(sql: QueueSession) -> None:
    """With their own rights on the tables below it; viewers may not."""
    for role, may in (("operate", True), ("readonly", True), ("worker", True), ("api", False), ("hub", False)):
        assert (
            sql.value("SELECT has_table_privilege(%s, 'livewell.outbox_debezium', 'SELECT')", f"livewell_{role}") is may
        )
    sql.rows("SET ROLE livewell_readonly")
    assert sql.rows("SELECT * FROM livewell.outbox_debezium") == []
