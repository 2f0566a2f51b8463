"""The outbox's SQL functions as a test speaks them: emit, claim, finish, renew, and look."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.support.queue_sql import QueueSession

SINK = "shop"
TOPIC = "orders.created"
PARKING = "orders.paid"  # a topic whose dead letters hold up their key
TABLES = (
    "event_flight",
    "relay",
    "relay_shard",
    "event_block",
    "event_delivery",
    "dead_event",
    "event_sent",
    "event",
    "event_stat",
    "event_replay",
    "event_route",
    "event_sink",
    "event_topic",
    "inbox",
    "warning",
)
EXCHANGE = (
    "SELECT * FROM livewell.exchange_events(%s, %s::bigint[], %s::text[], %s::text[], %s::float8[], %s::bigint[], %s)"
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """An event as a relay gets it."""

    number: int
    lane: int
    topic: str
    key: str | None
    tenant: str
    payload: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What an exchange answered; `finished` is None if the relay was buried."""

    finished: int | None
    events: list[Claimed]

    @property
    def numbers(self) -> list[int]:
        return [event.number for event in self.events]

    @property
    def keys(self) -> list[str | None]:
        return [event.key for event in self.events]


class OutboxSession(QueueSession):
    """One session on one connection; the clock stands still until it is moved."""

    def reset(self) -> None:
        """Empty everything; two topics and one sink that takes both."""
        self.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())
        self.rows("SELECT livewell.ensure_event_days(3)")
        self.topic(TOPIC)
        self.topic(PARKING, on_dead="park")
        self.sink()

    # -- declaring --------------------------------------------------------------------------------

    def topic(self, name: str, **options: Any) -> bool:
        return bool(self.value("SELECT livewell.declare_topic(%s, %s::jsonb)", name, json.dumps(options)))

    def sink(self, name: str = SINK, topics: Sequence[str] = ("*",), **options: Any) -> int:
        """Without jitter and growth unless told otherwise: a failed event is due after a second."""
        given = {"backoff_base_seconds": 1, "backoff_cap_seconds": 1, **options}
        return int(
            self.value("SELECT livewell.declare_sink(%s, 'own', %s, %s::jsonb)", name, list(topics), json.dumps(given))
        )

    # -- emitting ---------------------------------------------------------------------------------

    def emit(
        self, key: str | None = None, *, n: int = 1, tenant: str = "", topic: str = TOPIC, payload: str = "{}"
    ) -> list[int]:
        """Emit n events of one key; answers their numbers."""
        query = "SELECT livewell.emit_event(%s, %s::json, %s, %s)"
        return [int(self.value(query, topic, payload, key, tenant).rsplit("-", 1)[1]) for _ in range(n)]

    def emit_many(self, keys: Sequence[str | None], *, tenants: Sequence[str] | None = None) -> list[int]:
        """One event for each key, in one statement."""
        ids = self.value(
            "SELECT livewell.emit_events(%s::text[], %s::text[], %s::text[], %s::text[])",
            [TOPIC] * len(keys),
            ["{}"] * len(keys),
            list(keys),
            list(tenants) if tenants is not None else [""] * len(keys),
        )
        return [int(one.rsplit("-", 1)[1]) for one in ids]

    # -- relays -----------------------------------------------------------------------------------

    def relay(self, sink: str = SINK, *, lease: float = 45) -> int:
        """A new relay, with its share of the shards."""
        relay = int(self.value("SELECT livewell.register_relay(%s, 'test', '1', %s)", sink, lease))
        self.beat(relay, lease=lease)
        return relay

    def beat(
        self, relay: int, *, lease: float = 45, batch: float | None = None, away: str | None = None
    ) -> tuple[bool, int, bool, int]:
        """The heartbeat: alive, shards, paused, batch_max."""
        row = self.rows("SELECT * FROM livewell.renew_relay(%s, %s, %s, %s)", relay, lease, batch, away)[0]
        return row[0], row[1], row[2], row[3]

    def make_steady(self, relay: int) -> None:
        """Let it have renewed without a gap for a whole lease, so that it may bury others."""
        self.rows("UPDATE livewell.relay SET steady_since = steady_since - lease WHERE id = %s", relay)

    def expire_relay(self, relay: int) -> None:
        """Let its lease have run out a minute ago."""
        self.rows(
            "UPDATE livewell.relay SET renewed_at = livewell.now() - lease - interval '1 minute', "
            "expires_at = livewell.now() - interval '1 minute' WHERE id = %s",
            relay,
        )

    def exchange(
        self,
        relay: int,
        *,
        delivered: Iterable[int] = (),
        limit: int = 100,
        sending: Iterable[int] = (),
        again: float | None = None,
        **others: Iterable[int],
    ) -> Exchanged:
        """Finish with verdicts (delivered=…, failed=…, refused=…, unknown=…), then claim."""
        told = [(number, "delivered") for number in delivered]
        told += [(number, verdict) for verdict, numbers in others.items() for number in numbers]
        rows = self.rows(
            EXCHANGE,
            relay,
            [number for number, _ in told],
            [verdict for _, verdict in told],
            [None if verdict == "delivered" else f"it was {verdict}" for _, verdict in told],
            [again for _ in told],
            list(sending),
            limit,
        )
        events = [Claimed(r[1], r[2], r[4], r[5], r[6], r[7], r[9]) for r in rows if r[0] == "event"]
        return Exchanged(rows[0][1] if rows else None, events)

    def claim_events(self, relay: int, limit: int = 100) -> list[int]:
        """Numbers of a new batch; what was in flight goes back."""
        return self.exchange(relay, limit=limit).numbers

    def drain(self, relay: int, *, limit: int = 100, turns: int = 1000) -> list[Claimed]:
        """Deliver everything that can be delivered; answers it in the order of delivery."""
        found: list[Claimed] = []
        batch = self.exchange(relay, limit=limit)
        for _ in range(turns):
            found += batch.events
            if not batch.events:
                return found
            batch = self.exchange(relay, delivered=batch.numbers, limit=limit)
        raise AssertionError(f"still something there after {turns} batches")

    # -- outside ----------------------------------------------------------------------------------

    def outside_claim(self, token: UUID, limit: int = 10, *, tenant: str | None = None) -> list[int]:
        return self.column("SELECT id FROM livewell.outbox_claim(%s, %s, %s)", limit, token, tenant)

    def mark_delivered(self, token: UUID, ids: Sequence[int | None]) -> int:
        return int(self.value("SELECT livewell.outbox_mark_delivered(%s, %s::bigint[])", token, list(ids)))

    def mark_failed(self, token: UUID, ids: Sequence[int]) -> int:
        return int(self.value("SELECT livewell.outbox_mark_failed(%s, %s::bigint[], 'no')", token, list(ids)))

    # -- looking ----------------------------------------------------------------------------------

    def waiting(self) -> list[int]:
        """Numbers that are still to be delivered."""
        return self.column("SELECT number FROM livewell.event_delivery ORDER BY number")

    def aside(self) -> list[int]:
        return self.column("SELECT number FROM livewell.event_delivery WHERE aside ORDER BY number")

    def blocks(self) -> list[tuple[str, int]]:
        """State and blocking event of every blocked key."""
        return [
            (row[0], row[1])
            for row in self.rows("SELECT state::text, number FROM livewell.event_block ORDER BY number")
        ]

    def letters(self) -> list[tuple[int, str, bool]]:
        """Number, reason and parks of every dead letter."""
        return [
            (row[0], row[1], row[2])
            for row in self.rows("SELECT number, reason, parks FROM livewell.dead_event ORDER BY number")
        ]

    def shards(self, relay: int | None) -> int:
        return int(
            self.value("SELECT count(*) FROM livewell.relay_shard WHERE relay IS NOT DISTINCT FROM %s::bigint", relay)
        )

    def flying(self) -> list[int]:
        return self.column("SELECT unnest(numbers) FROM livewell.event_flight ORDER BY 1")
