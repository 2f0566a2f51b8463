"""Emit events: `await app.emit("orders.created", key="42", tenant="acme", payload={…}, tx=tx)`.

    in the caller's transaction ──commits──▶ the event is there, and so are its deliveries
    in our own ──the answer of the commit is lost──▶ Postgres is asked what became of it
                                                        ├──committed──▶ done
                                                        └──aborted──▶ emitted once more

Without tx= the event is emitted in a transaction of its own. Its number is drawn in there, so it
cannot be the key of a repeat; the transaction's own id is: pg_xact_status knows its end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from livewell.db import Database, Transaction
from livewell.db.foreign import Foreign, fetch_in
from livewell.db.open_app import OpenApp
from livewell.errors import DatabaseConflict, DatabaseUnavailable, InvalidOption, InvalidPayload
from livewell.loops import backoff_seconds
from livewell.outbox.nudges import EVENTS
from livewell.telemetry import tracing

_EMIT = "SELECT livewell.emit_event(%s, %s::json, %s, %s, %s)"
_EMIT_MANY = "SELECT livewell.emit_events(%s::text[], %s::text[], %s::text[], %s::text[], %s)"
_STATUS = "SELECT pg_catalog.pg_xact_status(%s::xid8)"
_TRIES = 4
MANY_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """One of many events to emit: `app.emit.many([NewEvent(topic=…, payload=…), …])`."""

    topic: str
    payload: Any
    key: str | None = None
    tenant: str = ""


class Emit:
    """`app.emit` of an open app."""

    def __init__(self, app: OpenApp) -> None:
        self._database = app.database
        self._nudger = app.nudger

    async def __call__(
        self,
        topic: str,
        *,
        payload: Any,
        key: str | None = None,
        tenant: str = "",
        tx: Transaction | Foreign | None = None,
    ) -> str:
        """Emit one event; with tx it exists exactly if that transaction commits.

        Events of one tenant and key reach each sink in the order of their transactions; without a
        key an event has no order. Answers the id that receivers see.
        """
        return (await self._emit(_EMIT, (topic, written(topic, payload), key, tenant), tx))[0]

    async def many(self, events: Iterable[NewEvent], *, tx: Transaction | Foreign | None = None) -> list[str]:
        """Emit many events in this order, all or none, in one statement; answers their ids."""
        listed = list(events)
        if len(listed) > MANY_MAX:
            raise InvalidOption(f"{len(listed):,} events in one call: at most {MANY_MAX:,}")
        if not listed:
            return []
        params = (
            [one.topic for one in listed],
            [written(one.topic, one.payload) for one in listed],
            [one.key for one in listed],
            [one.tenant for one in listed],
        )
        return await self._emit(_EMIT_MANY, params, tx)

    async def _emit(self, query: str, params: Sequence[Any], tx: Transaction | Foreign | None) -> list[str]:
        with tracing.span("emit", "PRODUCER"):
            given = (*params, tracing.carried())
            if tx is None:
                ids = await _certainly(self._database, query, given)
                self._nudger.nudge(EVENTS)
            else:
                [(ids,)] = await fetch_in(tx, query, given, open_only=True)
                if isinstance(tx, Transaction):
                    tx.on_commit.append(partial(self._nudger.nudge, EVENTS))
        return [ids] if isinstance(ids, str) else list(ids)


def written(topic: str, payload: Any) -> str:
    """The payload as JSON text; it leaves exactly so."""
    try:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise InvalidPayload(f"event of topic {topic}: its payload cannot be written as JSON: {error}") from None
    if "\x00" in text:
        raise InvalidPayload(f"event of topic {topic}: its payload holds a NUL, which no text in Postgres can")
    return text


async def _certainly(database: Database, query: str, params: Sequence[Any]) -> Any:
    """Run it in a transaction of its own, once, whatever becomes of the connection."""
    for left in reversed(range(_TRIES)):
        mark: str | None = None
        try:
            async with database.transaction() as tx:
                [(answer, mark)] = await tx.fetch(f"{query}, pg_catalog.pg_current_xact_id()::text", params)
        except DatabaseConflict:
            if left == 0:
                raise
        except DatabaseUnavailable:
            if mark is not None and await _committed(database, mark):
                return answer
            if left == 0:
                raise
        else:
            return answer
        await asyncio.sleep(backoff_seconds(_TRIES - left))
    raise AssertionError("unreachable")


async def _committed(database: Database, mark: str) -> bool:
    """What became of a transaction whose commit was not answered.

    Raises DatabaseUnavailable if nobody can be asked: then it is unknown.
    """
    for left in reversed(range(_TRIES)):
        try:
            [(status,)] = await database.call(_STATUS, (mark,))
        except DatabaseUnavailable:
            if left == 0:
                raise
            status = "in progress"
        if status != "in progress":
            return bool(status == "committed")
        await asyncio.sleep(backoff_seconds(_TRIES - left))
    raise DatabaseUnavailable("the database does not say whether an event was emitted; its outcome is unknown")
