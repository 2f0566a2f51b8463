"""What people do with the outbox: look, pause, redrive, discard, remove, replay. Lists are keyset pages.

`app.outbox.admin` of an open app; from blocking code `app.sync.call(app.outbox.admin.redrive, …)`.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self
from uuid import uuid4

from livewell.db import Database, acts
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import EventNotFound, InvalidOption, UnknownSink
from livewell.outbox.nudges import EVENTS

Record = dict[str, Any]

BLOCK_STATES = ("failed", "sending", "parked", "draining")
REASONS = ("attempts", "refused", "lost")
REPLAY_RATE = 100.0

_PAGE = 100
_ACT_MAX = 1000  # letters in one transaction
_DROPPED_MAX = 10_000  # rows of a removed sink in one transaction
_IDS_NAMED_MAX = 50  # in a line of the audit
_PLACE = re.compile(r"([0-9]{1,4}):(-?[0-9]{1,19})", re.ASCII)  # sink and lane

_PAUSED = (
    "SELECT jsonb_build_object('paused', s.paused_at IS NOT NULL) FROM livewell.event_sink s "
    "WHERE s.name = %s FOR NO KEY UPDATE"
)
_PAUSE = acts.audited("livewell.pause_sink(%s, %s)", before=_PAUSED)
_REDRIVE = acts.audited("livewell.redrive_dead_events(%s, %s::bigint[])", count="d.answer")
_DISCARD = acts.audited("livewell.discard_dead_events(%s, %s::bigint[])", count="d.answer")
_REMOVE = acts.audited("livewell.remove_sink(%s, %s, %s)")
_BEGIN = acts.audited("livewell.begin_replay(%s, %s, %s, %s, %s, %s, %s, %s)")
_CANCEL = acts.audited("livewell.cancel_replay(%s)")
_TOPIC = acts.audited("livewell.declare_topic(%s, %s::jsonb)")
_SINK = acts.audited("livewell.declare_sink(%s, %s, %s, %s::jsonb)")
_EMIT = acts.audited("livewell.emit_event(%s, %s::json, %s, %s)")
_NUMBERS = "SELECT g.id, livewell.event_number(g.id) FROM unnest(%s::text[]) AS g (id)"


@dataclass(frozen=True, slots=True)
class BlockPage:
    """A part of the keys that wait. next: after which to go on; None: there is nothing more."""

    rows: list[Record]
    next: str | None


class OutboxAdmin:
    """The operator's hands, used by the command line, the server and code."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database, app.nudger)

    # -- looking ----------------------------------------------------------------------------------

    async def sinks(self) -> list[Record]:
        """Every sink: its policy, what waits for it, what blocks it, and who delivers to it."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_sinks()")

    async def sink(self, name: str, *, tenants: int = 10) -> Record:
        """One sink, with the tenants that have waited longest and the bound within which each has its turn."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.list_sinks(%s)", (name,))
        if not rows:
            raise await self._unknown(name)
        return {**rows[0], "lag": await self.lag(name, limit=tenants), "fair_share": await self.fair_share(name)}

    async def stats(self) -> Record:
        """All sinks together, and each: what waits, what is dead, and who delivers."""
        sinks = await self.sinks()
        sums = {name: sum(one[name] for one in sinks) for name in ("waiting", "in_flight", "blocked", "parked", "dead")}
        oldest = min((one["oldest_at"] for one in sinks if one["oldest_at"] is not None), default=None)
        return {**sums, "oldest_at": oldest, "sinks": sinks}

    async def topics(self, *, after: str = "", limit: int = 50) -> list[Record]:
        """A page of topics by name, with the sinks that take each."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_topics(%s, %s)", (after, limit))

    async def lag(self, sink: str, *, limit: int = 20) -> list[Record]:
        """The tenants that have waited longest at a sink, with the first undelivered event of each."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_lag(%s, %s)", (sink, limit))

    async def fair_share(self, sink: str) -> list[Record]:
        """For each relay of a sink: within how many claims every tenant has its turn."""
        return await self._database.call_dicts("SELECT * FROM livewell.fair_share(%s)", (sink,))

    async def blocks(
        self, *, sink: str | None = None, state: str | None = None, after: str | None = None, limit: int = 50
    ) -> BlockPage:
        """A page of keys that wait: the event that blocks each, and how many are set aside behind it.

        One call looks at 10,000 keys: a page may have fewer than `limit`, or none, and still a
        next.
        """
        _check("state", state, BLOCK_STATES)
        read = _PLACE.fullmatch(after or "0:0")
        if read is None or not -(2**63) <= int(read[2]) < 2**63:
            raise InvalidOption(f"after {after!r}: it is the `next` of the page before")
        query = "SELECT * FROM livewell.list_blocks(%s, %s, %s, %s)"
        rows = await self._database.call_dicts(query, (sink, state, after, limit))
        place = rows[0]["next"] if rows else None
        found = [{name: value for name, value in row.items() if name != "next"} for row in rows if row["state"]]
        return BlockPage(found, place)

    async def dead(
        self,
        *,
        sink: str | None = None,
        topic: str | None = None,
        reason: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 50,
    ) -> list[Record]:
        """A page of dead events. after: number and sink of the last one of the page before."""
        _check("reason", reason, REASONS)
        place = after or (None, None)
        query = "SELECT * FROM livewell.list_dead_events(%s, %s, %s, %s, %s, %s)"
        return await self._database.call_dicts(query, (sink, topic, reason, *place, limit))

    async def dead_groups(self, *, limit: int = 50) -> list[Record]:
        """Dead events by sink, topic and reason, the largest groups first."""
        return await self._database.call_dicts("SELECT * FROM livewell.group_dead_events(%s)", (limit,))

    async def event(self, event_id: str | int) -> Record:
        """One event with its payload as it leaves, and how far it is at each sink."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.show_event(%s)", (str(event_id),))
        if not rows:
            raise _no_such(event_id)
        query = "SELECT * FROM livewell.list_event_states(%s, %s, NULL)"
        states = await self._database.call_dicts(query, (rows[0]["number"], rows[0]["day"]))
        shown = {name: value for name, value in rows[0].items() if name != "day"}
        return {**shown, "sinks": states}

    async def why(self, event_id: str | int, *, sink: str | None = None) -> list[Record]:
        """Why an event has not arrived: what stands in its way at each sink, and the next step, in words."""
        query = "SELECT * FROM livewell.why_event(%s, %s)"
        rows = await self._database.call_dicts(query, (str(event_id), sink))
        if not rows:
            await self.event(event_id)
            if sink is not None:
                raise await self._unknown(sink)
        return rows

    # -- dead events ------------------------------------------------------------------------------

    async def redrive(self, ids: Sequence[str | int], *, sink: str | None = None) -> int:
        """Give dead events another life, in front of what waits behind them; answers how many went.

        ids: as receivers see them, or numbers. sink: only letters of this one.
        """
        n = await self._on_letters(_REDRIVE, "outbox.redrive", await self._numbers(ids), sink)
        self._nudger.nudge(EVENTS)
        return n

    async def discard(self, ids: Sequence[str | int], *, sink: str | None = None) -> int:
        """Delete dead events for good; what is parked behind them goes, in order. Answers how many."""
        n = await self._on_letters(_DISCARD, "outbox.discard", await self._numbers(ids), sink)
        self._nudger.nudge(EVENTS)
        return n

    async def redrive_all(
        self, *, sink: str | None = None, topic: str | None = None, reason: str | None = None, pages: int | None = None
    ) -> int:
        """Redrive all dead events that match, page by page; one that dies again meanwhile is left."""
        n = 0
        async for name, numbers in self._letters(sink, topic, reason, pages):
            n += await self._on_letters(_REDRIVE, "outbox.redrive", numbers, name, topic=topic, reason=reason)
            self._nudger.nudge(EVENTS)
        return n

    async def discard_all(
        self, *, sink: str | None = None, topic: str | None = None, reason: str | None = None, pages: int | None = None
    ) -> int:
        """Discard all dead events that match, page by page."""
        n = 0
        async for name, numbers in self._letters(sink, topic, reason, pages):
            n += await self._on_letters(_DISCARD, "outbox.discard", numbers, name, topic=topic, reason=reason)
            self._nudger.nudge(EVENTS)
        return n

    # -- sinks and topics -------------------------------------------------------------------------

    async def pause(self, sink: str, *, paused: bool = True) -> bool:
        """Stop (or start) delivering to a sink; False if it was so already. Events are kept meanwhile."""
        act = acts.line("outbox.pause" if paused else "outbox.resume", sink, after={"paused": paused})
        [(is_known, _, was)] = await self._database.call(_PAUSE, (sink, sink, paused, *act))
        if not is_known:
            raise await self._unknown(sink)
        if not paused:
            self._nudger.nudge(EVENTS)
        return bool(was["paused"] != paused)

    async def resume(self, sink: str) -> bool:
        """Start delivering to a sink again; False if it was not paused."""
        return await self.pause(sink, paused=False)

    async def remove_sink(self, sink: str, *, force: bool = False) -> None:
        """Remove a sink. With events that wait or dead ones it is refused; force drops them, in pages."""
        while True:
            line = acts.line("outbox.remove_sink", sink, force=force)
            answer = (await self._database.call(_REMOVE, (sink, force, _DROPPED_MAX, *line)))[0][0]
            if answer is None:
                raise await self._unknown(sink)
            if answer == "waiting":
                raise InvalidOption(
                    f"sink {sink}: events wait for it or are dead letters of it; see them with: livewell outbox "
                    f"sinks show {sink}; to drop them: livewell outbox sinks remove {sink} --force"
                )
            if answer == "removed":
                return
            force = True  # it has begun

    async def declare_topic(
        self,
        name: str,
        *,
        on_dead: Literal["continue", "park"] | None = None,
        payload_bytes_max: int | None = None,
    ) -> bool:
        """Declare a topic, or change it; what is None stays. False if it was so already."""
        given = {"on_dead": on_dead, "payload_bytes_max": payload_bytes_max}
        options = {key: value for key, value in given.items() if value is not None}
        line = acts.line("outbox.declare_topic", name, options=options)
        return bool((await self._database.call(_TOPIC, (name, json.dumps(options), *line)))[0][0])

    async def declare_outside(self, name: str, topics: Sequence[str], **policy: object) -> None:
        """Declare a sink whose events programs elsewhere claim, with outbox_claim."""
        options = {**policy, "outside": True}
        line = acts.line("outbox.declare_sink", name, topics=list(topics), options=options)
        await self._database.call(_SINK, (name, "outside", list(topics), json.dumps(options), *line))

    async def emit(self, topic: str, payload: str, *, key: str | None = None, tenant: str = "") -> str:
        """Emit one event by hand; answers its id. payload: JSON as text, which leaves letter by letter.

        If the answer is lost nobody knows whether it was emitted: app.emit finds that out.
        """
        line = acts.line("outbox.emit", topic, key=key, tenant=tenant)
        answer = (await self._database.call(_EMIT, (topic, payload, key, tenant, *line)))[0][0]
        self._nudger.nudge(EVENTS)
        return str(answer)

    # -- replays ----------------------------------------------------------------------------------

    async def begin_replay(
        self,
        sink: str,
        *,
        start: datetime,
        end: datetime | None = None,
        topic: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        rate: float = REPLAY_RATE,
        request_key: str | None = None,
    ) -> int:
        """Deliver past events once more, with the same ids, behind what is new; answers the replay's number.

        start, end: when they were emitted; without an end until now. rate: events a second at most.
        request_key: the caller's own; repeated, it answers the replay that it began.
        """
        for name, instant in (("start", start), ("end", end)):
            if instant is not None and instant.tzinfo is None:
                raise InvalidOption(f"{name} {instant}: a time zone is needed, for example {instant}+00:00")
        if sink not in await self._sink_names(1000):
            raise await self._unknown(sink)
        asked = (sink, topic, tenant, key, start, end, rate, request_key or uuid4().hex)
        line = acts.line(
            "outbox.begin_replay", sink, topic=topic, start=start.isoformat(), end=end and end.isoformat(), rate=rate
        )
        return int((await self._database.call(_BEGIN, (*asked, *line)))[0][0])

    async def replays(self, *, before: int | None = None, limit: int = 50, running: bool = False) -> list[Record]:
        """A page of replays, the newest first, with how far each is."""
        query = "SELECT * FROM livewell.list_replays(%s, %s, %s)"
        return await self._database.call_dicts(query, (before or None, limit, running))

    async def cancel_replay(self, replay_id: int) -> bool:
        """End a replay; False if it had ended. What it has fed is still delivered."""
        line = acts.line("outbox.cancel_replay", f"replay {replay_id}")
        answer = (await self._database.call(_CANCEL, (replay_id, *line)))[0][0]
        if answer is None:
            raise EventNotFound(f"replay {replay_id}: there is none; list them with: livewell outbox replay list")
        return bool(answer == "ended")

    # -- helpers ----------------------------------------------------------------------------------

    async def _numbers(self, ids: Sequence[str | int]) -> list[int]:
        if len(ids) > _ACT_MAX:
            raise InvalidOption(f"{len(ids):,} events in one call: at most {_ACT_MAX:,}")
        rows = await self._database.call(_NUMBERS, ([str(one) for one in ids],))
        for given, number in rows:
            if number is None:
                raise _no_such(given)
        return [number for _, number in rows]

    async def _on_letters(
        self, query: str, action: str, numbers: Sequence[int], sink: str | None, **matching: str | None
    ) -> int:
        subject = f"event {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} dead events"
        named = {name: value for name, value in {"sink": sink, **matching}.items() if value is not None}
        line = acts.line(action, subject, numbers=list(numbers[:_IDS_NAMED_MAX]), matching=named)
        return int((await self._database.call(query, (sink, list(numbers), *line)))[0][0])

    async def _letters(
        self, sink: str | None, topic: str | None, reason: str | None, pages: int | None
    ) -> AsyncIterator[tuple[str, list[int]]]:
        """By keyset, so that each letter is met once: pages of one sink each."""
        after: tuple[int, str] | None = None
        while pages is None or pages > 0:
            pages = None if pages is None else pages - 1
            rows = await self.dead(sink=sink, topic=topic, reason=reason, after=after, limit=_PAGE)
            if not rows:
                return
            after = rows[-1]["number"], rows[-1]["sink"]
            for name in sorted({row["sink"] for row in rows}):
                yield name, [row["number"] for row in rows if row["sink"] == name]

    async def _sink_names(self, limit: int) -> list[str]:
        query = "SELECT s.name FROM livewell.event_sink s ORDER BY s.name LIMIT %s"
        return [str(row[0]) for row in await self._database.call(query, (limit,))]

    async def _unknown(self, sink: str) -> UnknownSink:
        names = await self._sink_names(20)
        return UnknownSink(f"sink {sink!r} is not declared; there are: {', '.join(names) or 'none'}")


def _check(what: str, given: str | None, allowed: Sequence[str]) -> None:
    if given is not None and given not in allowed:
        raise InvalidOption(f"{what} {given!r}: allowed are {', '.join(allowed)}")


def _no_such(event_id: str | int) -> EventNotFound:
    return EventNotFound(
        f"event {event_id}: there is none with that id (events are kept for some days after their last delivery)"
    )
