"""One relay: claims the events of one sink, sends them, and finishes them, until it is stopped.

    registering ──▶ opening the sink ──▶ exchanging ⇄ sending
        ▲               ▲                    │  └──nothing there──▶ resting ──woken, or polling──▶ exchanging
        │               └──the sink is away──┤
        └──the lease is lost─────────────────┘

An exchange finishes the batch before and claims the next, in one call. A batch that is not settled
within `relay_batch_seconds` does not hold up the others: what is late goes on, later events of its
keys wait for it, and the next batch is claimed around it.

If an exchange fails, what was to be finished is finished with the next one: the database knows what
is in flight, so sending it again does no harm, and what was claimed by an answer that never came
goes back by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime

import structlog

from livewell.db import Database, Row
from livewell.db.link import Link, as_numbers
from livewell.errors import DatabaseError, LivewellError
from livewell.limits.notation import rate as read_rate
from livewell.loops import Waker, WarningBuffer, backoff_seconds, jittered, kind_of
from livewell.outbox.definition import SinkDefinition
from livewell.outbox.event import Event
from livewell.outbox.relay.batch_size import BatchSize
from livewell.outbox.relay.in_flight import InFlight
from livewell.outbox.relay.lease import Lease, Renewed
from livewell.outbox.relay.pace import Pace
from livewell.outbox.relay.sending import send_batch
from livewell.outbox.sink import Outcome, Sink, SinkAway, Verdict
from livewell.telemetry.redact import redact

log = structlog.get_logger("livewell.outbox")

_EXCHANGE = "SELECT * FROM livewell.exchange_events($1, $2, $3, $4, $5, $6, $7)"
_SOURCE = "SELECT install, source FROM livewell.event_source"
_STATS = "SELECT livewell.add_event_stats(%s, %s::text[], %s::bigint[], %s::bigint[])"
_AWAY_SECONDS_MAX = 30.0
_PACE_SECONDS_MIN = 0.01
_DRAIN_SECONDS = 5.0  # of a stop: what is on its way is given so long
_STRAGGLERS = 100  # that take nothing from the room of the next batch


class Relay:
    """Of one sink, in one process."""

    def __init__(self, database: Database, definition: SinkDefinition, holder: str) -> None:
        self._settings = database.settings
        self._definition = definition
        self._link: Link = database.link()
        self._lease = Lease(database, definition.name, holder, self._on_lost)
        self._flight = InFlight()
        self._size = BatchSize(self._settings.relay_batch_seconds)
        rate = definition.policy.get("rate")
        self._asked = 0  # events, by the last exchange
        self._pace = Pace(None if rate is None else read_rate(rate, definition.name))
        self._waker = Waker()
        self._warnings = WarningBuffer(self._link.call)
        self._sink: Sink | None = None
        self._away: str | None = "not opened yet"
        self._away_times = 0  # in a row, without a delivery between
        self._open_at = 0.0
        self._batches: set[asyncio.Task[None]] = set()
        self._newest: list[Event] = []
        self._newest_at = 0.0
        self._origin: tuple[str, str] | None = None
        self._share: Renewed | None = None
        self._counts: Counter[str] = Counter()
        self._milliseconds = 0
        self._counted_at = time.monotonic()
        self._stopping = False
        self._stop_by = float("inf")
        self._deadline_seconds = float(definition.policy["deadline_seconds"])
        self.delivered = 0

    # -- from outside -----------------------------------------------------------------------------

    def wake(self) -> None:
        """There may be something to do."""
        self._waker.set()

    def stop(self) -> None:
        """Claim nothing more; run() ends when what is in flight is settled, or after some seconds."""
        self._stopping = True
        self._stop_by = time.monotonic() + _DRAIN_SECONDS
        self._waker.set()

    async def run(self) -> None:
        """Relay until stopped, through any outage of the database and of the sink."""
        beating = asyncio.create_task(self._beat())
        failures = 0
        try:
            while not self._done():
                try:
                    pause = await self._turn()
                    failures = 0
                except DatabaseError as error:
                    failures += 1
                    self._warnings.add("outbox", f"relay of {self._definition.name}: {kind_of(error)}", str(error))
                    pause = backoff_seconds(failures)
                await self._waker.rest(pause)
        finally:
            beating.cancel()
            await self._end()

    def _done(self) -> bool:
        settled = not self._flight and not self._flight.has_news
        return self._stopping and (settled or time.monotonic() >= self._stop_by)

    # -- the loop ---------------------------------------------------------------------------------

    async def _turn(self) -> float:
        """One step; answers for how long to rest."""
        if self._lease.id is None:
            self._share = await self._lease.register(away=self._away)
            if self._share is None and self._lease.id is None:
                return jittered(self._settings.poll_seconds * 5)  # the sink is not in the database
        await self._report()
        if self._away is not None and (self._until_open_seconds() > 0 or not await self._open()):
            await self._exchange()  # finishes what was settled before the sink went away; claims nothing
            return max(0.01, self._until_open_seconds())
        if self._batches and not self._ripe():
            return self._until_ripe_seconds()
        claimed = await self._exchange()
        if claimed:
            self._begin(claimed)
            return self._settings.relay_batch_seconds
        if self._asked == 0 and (rest := self._pace.until_room_seconds(self._shards)) > 0:
            return min(self._settings.poll_seconds, max(rest, _PACE_SECONDS_MIN))
        return self._settings.poll_seconds

    async def _exchange(self) -> list[Event]:
        lease = self._lease.id
        settled, sending = self._flight.take()
        try:
            if self._origin is None:
                self._origin = (await self._link.call(_SOURCE))[0][:2]
            self._asked = self._room(len(sending))
            params = (str(lease), *settled.columns(), as_numbers(sending), str(self._asked))
            rows = await self._link.ask(_EXCHANGE, params)
        except BaseException:
            self._flight.put_back(settled)
            raise
        if not rows:
            self._lease.lost(lease or 0)
            return []
        if self._lease.id != lease:
            return []  # lost meanwhile: what was claimed is others' again
        counts = settled.count()
        self._counts.update(counts)
        self.delivered += counts.get("delivered", 0)
        events = [self._event(row) for row in rows[1:]]
        self._flight.add(events)
        self._pace.sent(len(events))
        return events

    def _room(self, sending: int) -> int:
        if self._stopping or self._away is not None or self._share is None or self._share.paused:
            return 0
        # A few that take long leave the room to others; many are a sink that takes no more.
        room = max(self._size.now, _STRAGGLERS) - sending
        wanted = max(0, min(self._size.now, room, self._share.batch_max - sending))
        return self._pace.room(self._shards, wanted)

    @property
    def _shards(self) -> int:
        return 0 if self._share is None else self._share.shards

    def _event(self, row: Row) -> Event:
        _, number, lane, created_at, topic, key, tenant, payload, trace, attempt, replay = row
        install, source = self._origin or ("", "")
        made: datetime = created_at
        return Event(
            number, f"{install}-{number}", source, topic, key, tenant, made, payload, trace, lane, attempt, replay
        )

    # -- batches ----------------------------------------------------------------------------------

    def _begin(self, events: list[Event]) -> None:
        task = asyncio.create_task(self._send(events))
        self._newest, self._newest_at = events, time.monotonic()
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)

    async def _send(self, events: list[Event]) -> None:
        sink = self._sink
        if sink is None:
            self._flight.release(events)
            return
        begun = time.monotonic()
        settled, delivered, half_at = 0, 0, 0.0

        def count(outcome: Outcome) -> None:
            nonlocal settled, delivered, half_at
            settled += 1
            delivered += outcome.verdict is Verdict.DELIVERED
            if settled * 2 >= len(events) and not half_at:
                half_at = time.monotonic()

        away = await send_batch(sink, events, self._flight, deadline_seconds=self._deadline_seconds, settled=count)
        if away is not None:
            self._gone(away)
        else:
            if delivered:
                self._away_times = 0
            # Twice the faster half: one event that takes long says nothing about the pace.
            self._size.took(len(events), 2 * ((half_at or time.monotonic()) - begun))
        self._milliseconds += round((time.monotonic() - begun) * 1000)
        self._waker.set()

    def _ripe(self) -> bool:
        """True if it is time for an exchange although a batch is under way.

        The newest counts: behind one that takes long, each has its time.
        """
        return not self._flight.unsettled(self._newest) or self._until_ripe_seconds() <= 0

    def _until_ripe_seconds(self) -> float:
        return self._newest_at + self._settings.relay_batch_seconds - time.monotonic()

    # -- the sink ---------------------------------------------------------------------------------

    async def _open(self) -> bool:
        try:
            if self._sink is None and self._definition.make is not None:
                self._sink = self._definition.make()
            if self._sink is None:
                return False
            async with asyncio.timeout(self._deadline_seconds):
                await self._sink.open()
        except SinkAway as error:
            self._gone(str(error))
        except TimeoutError:
            self._gone(f"it did not open within {self._deadline_seconds:g} s")
        except LivewellError as error:
            self._gone(str(error))
        else:
            log.info("sink is open", sink=self._definition.name)
            self._away = None
            return True
        return False

    def _gone(self, why: str) -> None:
        """The sink takes nothing now."""
        reason = redact(why)
        if self._away is None or self._away_times == 0:
            log.warning("sink is away", sink=self._definition.name, reason=reason)
            self._warnings.add("outbox", f"sink {self._definition.name} is away", reason)
        self._away = reason
        self._away_times += 1
        self._open_at = time.monotonic() + min(_AWAY_SECONDS_MAX, backoff_seconds(self._away_times) * 2)

    def _until_open_seconds(self) -> float:
        """The rest of the pause: a nudge does not end it, nor does a sink that opens and takes nothing."""
        return max(0.0, self._open_at - time.monotonic())

    # -- the lease --------------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(jittered(self._settings.heartbeat_seconds, 0.8, 1.0))
            with suppress(DatabaseError):  # a late renewal is valid as long as the row exists
                share = await self._lease.renew(batch_seconds=self._size.batch_seconds, away=self._away)
                grown = share is not None and (self._share is None or share.shards > self._share.shards)
                self._share = share or self._share
                if grown:
                    self._waker.set()

    def _on_lost(self) -> None:
        log.warning("a relay lost its lease", sink=self._definition.name, in_flight=len(self._flight))
        self._warnings.add("outbox", "a relay lost its lease", self._definition.name)
        self._flight.forget()
        for batch in self._batches:
            batch.cancel()
        self._waker.set()

    # -- telling ----------------------------------------------------------------------------------

    async def _report(self) -> None:
        """Counts and warnings, every few seconds."""
        if time.monotonic() - self._counted_at < self._settings.stat_seconds and not self._stopping:
            return
        self._counted_at = time.monotonic()
        await self._warnings.flush()
        if self._counts:
            counts, took = self._counts, self._milliseconds
            self._counts, self._milliseconds = Counter(), 0
            told = [(outcome, n, took if outcome == Verdict.DELIVERED else 0) for outcome, n in counts.items()]
            await self._link.call(_STATS, (self._definition.name, *map(list, zip(*told, strict=True))))

    async def _end(self) -> None:
        """Hand over: what is settled is finished, the lease given back, the sink closed."""
        self._stopping = True
        batches = set(self._batches)
        if batches:
            _, late = await asyncio.wait(batches, timeout=_DRAIN_SECONDS)
            for batch in late:
                batch.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        with suppress(DatabaseError):
            if self._lease.id is not None:
                await self._exchange()
                await self._report()
        with suppress(DatabaseError):
            await self._lease.give_back()
        await self._link.close()
        if self._sink is not None:
            await self._sink.close()
