"""Honest people at one address.

Anonymous viewers with a public key, one user with a key, one with a token; and a supervisor that
looks at /healthz.

    arrive ──each has a session and a stream──▶ stay(seconds): read, say that they are there, see values change ──▶ leave

They stay below the limits of their own (reads of a public key at one address: 10 a second), so
whatever is refused is refused because of somebody else.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
import psycopg

from livewell.testing.sse_client import EventStream
from tests.faults.http_support import Site
from tests.faults.siege.record import Record

ANSWER_SECONDS_MAX = 10.0
LAST_VALUE_SECONDS_MAX = 15.0
ANONYMOUS_READS_PER_SECOND = 8.0
PERSON_SECONDS = 1.0  # between two reads of somebody with a name
ARRIVE_SECONDS = 0.12  # three requests each, and a public key at one address has 30 a second
BEAT_SECONDS = 5.0
PROBE_SECONDS = 0.25
STORE = """
WITH written AS (UPDATE livewell_data.quote SET price = %s WHERE key = 'AAPL')
UPDATE livewell.ledger SET version = version + 1, status_version = status_version + 1, status_at = livewell.now(), fetched_at = livewell.now(), checked_at = livewell.now(), source_at = livewell.now()
WHERE data_type = 'quote' AND key = 'AAPL'
"""
CHANGED = "SELECT pg_notify('livewell', 'refresh.changed')"  # as who stores does


@dataclass(slots=True)
class Person:
    """Somebody with a stream."""

    name: str
    bearer: str
    every_seconds: float  # between two reads
    watched: tuple[str, ...] = ("AAPL",)
    session: str = ""
    stream: EventStream | None = None
    price: float = 0.0
    bye: str = ""
    seen: set[str] = field(default_factory=set)  # keys of which a reading came

    def on_event(self, name: str, data: bytes) -> None:
        """Keep the newest price, and why it ended."""
        if name == "bye":
            self.bye = data.decode()
        elif name == "reading":
            reading = json.loads(data)
            self.seen.add(reading.get("key"))
            if reading.get("key") == "AAPL" and reading.get("value"):
                self.price = float(reading["value"]["price"])


@dataclass(slots=True)
class Honest:
    """All of them."""

    site: Site
    client: aiohttp.ClientSession
    supervisor: aiohttp.ClientSession  # a new connection each time
    people: list[Person]
    record: Record = field(default_factory=Record)
    price: float = 1.0

    async def arrive(self) -> None:
        """Everybody opens a session, subscribes and streams, one after another."""
        for person in self.people:
            await self._enter(person)
            await asyncio.sleep(ARRIVE_SECONDS)

    async def stay(self, seconds: float) -> Record:
        """Do what viewers do."""
        until = time.monotonic() + seconds
        loops = [self._repeat(until, PROBE_SECONDS, self._probe), self._repeat(until, 1.0, self._store)]
        for number, person in enumerate(self.people):
            spread = number / len(self.people)
            loops += [
                self._repeat(until, person.every_seconds, partial(self.read, person), spread),
                self._repeat(until, BEAT_SECONDS, partial(self._beat, person), spread),
            ]
        await asyncio.gather(*loops)
        return self.record

    async def ask(self, kind: str, method: str, path: str, bearer: str, document: object = None) -> tuple[int, Any]:
        """One request, on record; status 0 if it was not answered."""
        begun = time.monotonic()
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        client = self.client if bearer else self.supervisor
        try:
            async with client.request(method, self.site.base + path, headers=headers, json=document) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError):
            self.record.unanswered[kind] += 1
            return 0, None
        self.record.answered(kind, answer.status, time.monotonic() - begun)
        return answer.status, json.loads(body) if body.startswith(b"{") else body

    async def read(self, person: Person) -> int:
        """What a page does that shows one value."""
        status, _ = await self.ask("read", "GET", "/v1/data/quote/AAPL", person.bearer)
        return status

    async def newcomer(self, name: str, bearer: str, *keys: str) -> None:
        """Somebody who comes in the middle of it all and wants to see these, too.

        If not, that is on record.
        """
        person = Person(name, bearer, PERSON_SECONDS, ("AAPL", *keys))
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await self._enter(person)
                await self._see(person)
        except (AssertionError, OSError, EOFError, TimeoutError) as error:
            self.record.dropped.append(f"{name} could not come in: {str(error)[:200] or type(error).__name__}")
        else:
            self.people.append(person)

    async def look_at(self, person: Person, key: str) -> None:
        """Somebody who is there wants to see one more; if they do not, that is on record."""
        person.watched += (key,)
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await self._subscribe(person)
                await self._see(person)
        except (AssertionError, TimeoutError) as error:
            self.record.late.append(f"{person.name} does not see {key}: {str(error)[:200]} {person.bye}")

    def leave(self) -> None:
        """Everybody goes."""
        for person in self.people:
            if person.stream is not None:
                person.stream.close()

    async def _enter(self, person: Person) -> None:
        status, opened = await self.ask("session", "POST", "/v1/sessions", person.bearer)
        assert status == 201, f"session: {status} {opened}"
        person.session = opened["session"]
        await self._subscribe(person)
        path = f"/v1/sessions/{person.session}"
        stream = await EventStream.open(self.site.base, f"{path}/stream", key=person.bearer, on_event=person.on_event)
        assert stream.status == 200, f"stream: {stream.status} {stream.body[:200]!r}"
        person.stream = stream

    async def _subscribe(self, person: Person) -> None:
        pairs = {"subscriptions": [{"type": "quote", "key": key} for key in person.watched]}
        path = f"/v1/sessions/{person.session}/subscriptions"
        status, told = await self.ask("subscribe", "PUT", path, person.bearer, pairs)
        assert status == 200, f"subscribe: {status} {told}"
        refused = {one["key"]: one["answer"] for one in told["subscriptions"] if one["answer"] != "subscribed"}
        assert not refused, f"subscribe: {refused}"

    async def _see(self, person: Person) -> None:
        """Wait for a reading of everything they look at."""
        while not set(person.watched) <= person.seen:
            assert person.stream is None or not person.stream.ended.is_set(), "the stream ended"
            await asyncio.sleep(0.05)

    async def _beat(self, person: Person) -> None:
        await self.ask("heartbeat", "PUT", f"/v1/sessions/{person.session}", person.bearer)

    async def _probe(self) -> None:
        await self.ask("healthz", "GET", "/healthz", "")

    async def _store(self) -> None:
        self.price += 1
        await asyncio.to_thread(store, self.site.fleet.dsn, self.price)

    async def _repeat(
        self, until: float, every: float, action: Callable[[], Awaitable[Any]], spread: float = 0.0
    ) -> None:
        """Every so often; who is answered late is not asked twice at once."""
        at = time.monotonic() + every * spread
        while at < until:
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            await action()
            at = max(at + every, time.monotonic())

    async def see_last(self) -> None:
        """Every stream that lives gets the last value.

        Who was dropped is on record with the reason.
        """
        limit = time.monotonic() + LAST_VALUE_SECONDS_MAX
        while time.monotonic() < limit and any(  # noqa: ASYNC110 - many streams, one look
            person.price != self.price for person in self._streaming()
        ):
            await asyncio.sleep(0.05)
        for person in self.people:
            if person.stream is None or person.stream.ended.is_set():
                self.record.dropped.append(f"{person.name} {person.bye}")
            elif person.price != self.price:
                self.record.late.append(f"{person.name} has {person.price:g}, not {self.price:g}")

    def _streaming(self) -> list[Person]:
        return [person for person in self.people if person.stream is not None and not person.stream.ended.is_set()]


def store(dsn: str, price: float) -> None:
    """A new price for everybody."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(STORE, (price,))
        connection.execute(CHANGED)


@asynccontextmanager
async def honest_people(site: Site, *, viewers: int, public: str, connected: bool = False) -> AsyncIterator[Honest]:
    """So many viewers have arrived, two of them with a name.

    connected: they share one connection that is never idle, the supervisor too, and need no new
    one.
    """
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS_MAX)
    anonymous = viewers - 2
    people = [
        Person("key user", site.key().text, PERSON_SECONDS),
        Person("token user", site.token("ann", scope="view subscribe"), PERSON_SECONDS),
        *(Person(f"viewer {n}", public, anonymous / ANONYMOUS_READS_PER_SECOND) for n in range(anonymous)),
    ]
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=1 if connected else 0)) as client,
        aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(force_close=True)) as supervisor,
    ):
        honest = Honest(site, client, client if connected else supervisor, people)
        try:
            await honest.arrive()
            yield honest
        finally:
            honest.leave()
