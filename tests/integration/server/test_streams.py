"""Streams over a real socket: snapshot, changes, and how they end."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from livewell.settings import Settings
from livewell.telemetry import measures
from livewell.testing.processes import eventually_async
from livewell.testing.sse_client import EventStream
from tests.support.http import Web, listening
from tests.support.store_sql import StoreSession

Logins = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Viewer:
    """A client with a key and a session."""

    web: Web
    key: str
    client: httpx2.AsyncClient
    session: str

    @classmethod
    async def come(cls, web: Web, *scopes: str, key: str | None = None, **options: Any) -> Viewer:
        key = key or web.key(*(scopes or ("view", "subscribe", "operate")), **options).text
        client = web.bearer(key)
        answer = await client.post("/v1/sessions")
        assert answer.status_code == 201, answer.text
        return cls(web, key, client, answer.json()["session"])

    def body(self, *keys: str, of: str = "quote") -> dict[str, Any]:
        return {"subscriptions": [{"type": of, "key": key} for key in keys]}

    async def subscribe(self, *keys: str, of: str = "quote") -> dict[str, Any]:
        answer = await self.client.put(f"/v1/sessions/{self.session}/subscriptions", json=self.body(*keys, of=of))
        assert answer.status_code == 200, answer.text
        return {one["key"]: one for one in answer.json()["subscriptions"]}

    async def unsubscribe(self, *keys: str) -> int:
        answer = await self.client.request(
            "DELETE", f"/v1/sessions/{self.session}/subscriptions", json=self.body(*keys)
        )
        assert answer.status_code == 200, answer.text
        return int(answer.json()["ended"])

    async def stream(self, **options: Any) -> EventStream:
        return await EventStream.open(self.web.base, f"/v1/sessions/{self.session}/stream", key=self.key, **options)


@pytest.fixture
def store(livewell_dsn: str) -> Iterator[StoreSession]:
    with StoreSession(livewell_dsn) as session:
        session.reset()
        session.rows("GRANT SELECT ON ALL TABLES IN SCHEMA livewell_data TO livewell_hub")
        yield session


def put(store: StoreSession, key: str, price: float) -> None:
    store.put(key, price)


@asynccontextmanager
async def served(dsn: str, made: Logins, settings: Settings, **changes: Any) -> AsyncIterator[Web]:
    async with listening(dsn, made, settings.model_copy(update={"poll_seconds": 0.1, **changes})) as web:
        yield web


@pytest.fixture
async def web(livewell_dsn: str, server_logins: Logins, server_settings: Settings) -> AsyncIterator[Web]:
    async with served(livewell_dsn, server_logins, server_settings) as opened:
        yield opened


async def priced(stream: EventStream, key: str, price: float) -> dict[str, Any]:
    """The reading of this key with this price."""
    while True:
        _, data = await stream.next("reading")
        if data["key"] == key and data.get("value") and data["value"]["price"] == price:
            found: dict[str, Any] = data
            return found


# -- what comes ----------------------------------------------------------------------------------


async def test_a_stream_gives_everything_then_ready_then_changes(web: Web, store: StoreSession) -> None:
    """Each key once, with its value; what is only verified comes without it."""
    put(store, "AAPL", 1)
    viewer = await Viewer.come(web)
    answers = await viewer.subscribe("AAPL", "MSFT", "a b")

    async with await viewer.stream() as stream:
        snapshot = await stream.until("ready")
        store.rows(
            "UPDATE livewell.ledger SET status_version = status_version + 1, status_at = livewell.now() WHERE "
            "key = 'AAPL'"
        )
        verified = (await stream.next("reading"))[1]
        put(store, "AAPL", 2)
        changed = await priced(stream, "AAPL", 2)

    assert {key: one["answer"] for key, one in answers.items()} == {
        "AAPL": "subscribed",
        "MSFT": "subscribed",
        "a b": "bad_key",
    }
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (stream.headers["cache-control"], stream.headers["x-accel-buffering"]) == ("no-store", "no")
    assert stream.retry_ms is not None
    assert 1000 <= stream.retry_ms <= 5000
    readings = {data["key"]: data for name, data in snapshot if name == "reading"}
    assert snapshot[-1] == ("ready", {"keys": 2})
    assert (readings["AAPL"]["value"], readings["AAPL"]["verdict"]) == ({"price": 1}, "fresh")
    assert (readings["MSFT"]["value"], readings["MSFT"]["verdict"]) == (None, "missing")
    assert set(readings["AAPL"]) == {
        "type",
        "key",
        "verdict",
        "source_at",
        "fetched_at",
        "checked_at",
        "stale_at",
        "fresh_for_seconds",
        "age_seconds",
        "version",
        "status_version",
        "reason",
        "value",
    }
    assert ("value" in verified, verified["version"]) == (False, 1)
    assert changed["version"] == 2


async def test_subscriptions_change_under_an_open_stream(web: Web, store: StoreSession) -> None:
    """Added, taken away, and added again: then its value comes again, too."""
    put(store, "AAPL", 1)
    put(store, "MSFT", 2)
    viewer = await Viewer.come(web)
    async with await viewer.stream() as stream:
        assert await stream.until("ready") == [("ready", {"keys": 0})]
        await viewer.subscribe("AAPL")
        await priced(stream, "AAPL", 1)
        assert await viewer.unsubscribe("AAPL", "IBM") == 1
        await viewer.subscribe("MSFT")
        await priced(stream, "MSFT", 2)
        put(store, "AAPL", 3)
        await viewer.subscribe("AAPL")
        await priced(stream, "AAPL", 3)


async def test_a_change_through_another_server_arrives(
    web: Web, store: StoreSession, livewell_dsn: str, server_logins: Logins, server_settings: Settings
) -> None:
    """The stream is here, the subscription is made there."""
    put(store, "AAPL", 1)
    viewer = await Viewer.come(web)
    async with (
        served(livewell_dsn, server_logins, server_settings) as elsewhere,
        await viewer.stream() as stream,
    ):
        there = Viewer(elsewhere, viewer.key, elsewhere.bearer(viewer.key), viewer.session)
        await there.subscribe("AAPL")
        await priced(stream, "AAPL", 1)
        await there.client.delete(f"/v1/sessions/{viewer.session}")
        assert await stream.next("bye") == ("bye", {"reason": "session"})


async def test_last_event_id_means_nothing(web: Web, store: StoreSession) -> None:
    """Whatever a client claims to have seen, it is given everything."""
    put(store, "AAPL", 1)
    viewer = await Viewer.come(web)
    await viewer.subscribe("AAPL")
    for claim in ("5", "-1", "99999999999999999999", "x" * 2000, "%00"):
        async with await viewer.stream(headers={"Last-Event-ID": claim}) as stream:
            assert [name for name, _ in await stream.until("ready")] == ["reading", "ready"]


# -- how it ends ---------------------------------------------------------------------------------


async def test_a_newer_stream_takes_the_place_of_the_older(web: Web, store: StoreSession) -> None:
    viewer = await Viewer.come(web)
    async with await viewer.stream() as older, await viewer.stream() as newer:
        assert (await older.until("bye"))[-1] == ("bye", {"reason": "replaced"})
        await asyncio.wait_for(older.ended.wait(), 5)
        await newer.until("ready")
        assert web.state.streams.count == 1


async def test_beats_come_while_nothing_changes(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    async with served(livewell_dsn, server_logins, server_settings, push_beat_seconds=0.2) as web:
        viewer = await Viewer.come(web)
        async with await viewer.stream() as stream:
            begun = time.monotonic()
            for _ in range(3):
                assert await stream.next("beat") == ("beat", {})
            assert 0.4 <= time.monotonic() - begun < 3


async def test_a_stopping_server_says_goodbye(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    """Every stream is told, and nobody is waited for."""
    async with served(livewell_dsn, server_logins, server_settings) as web:
        viewers = [await Viewer.come(web, "view", "subscribe", public=True) for _ in range(5)]
        streams = [await viewer.stream() for viewer in viewers]
        begun = time.monotonic()
    for stream in streams:
        assert (await stream.until("bye"))[-1] == ("bye", {"reason": "stopping"})
    assert time.monotonic() - begun < 4


async def test_a_revoked_key_ends_its_streams(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    """Rights are looked at again while the stream is open.

    Broken once: without the check the stream went on, and this ran into its timeout.
    """
    async with served(livewell_dsn, server_logins, server_settings, push_rights_seconds=0.3) as web:
        viewer = await Viewer.come(web)
        async with await viewer.stream() as stream:
            await stream.until("ready")
            web.rows("UPDATE livewell.api_key SET revoked_at = now()")
            assert await stream.next("bye") == ("bye", {"reason": "rights"})


async def test_types_that_were_taken_away_are_shown_no_more(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    """And types that were never given are refused when they are asked for."""
    async with served(livewell_dsn, server_logins, server_settings, push_rights_seconds=0.3) as web:
        put(store, "AAPL", 1)
        viewer = await Viewer.come(web, "view", "subscribe")
        await viewer.subscribe("AAPL")
        async with await viewer.stream() as stream:
            await priced(stream, "AAPL", 1)
            web.rows("UPDATE livewell.api_key SET types = '{other}'")

            async def unseen() -> bool:
                return web.state.reads.hub.followed == 0

            await eventually_async(unseen, timeout=5, what="it is followed no more")
            assert (await viewer.subscribe("MSFT"))["MSFT"]["answer"] == "forbidden"
            put(store, "AAPL", 2)
            with pytest.raises(TimeoutError):
                await stream.next("reading", seconds=1)


async def test_who_leaves_is_forgotten(web: Web, store: StoreSession) -> None:
    viewer = await Viewer.come(web)
    await viewer.subscribe("AAPL")
    stream = await viewer.stream()
    await stream.until("ready")
    stream.close()

    async def gone() -> bool:
        return web.state.streams.count == web.state.sessions.count == web.state.reads.hub.followed == 0

    await eventually_async(gone, timeout=5, what="nothing is left of it")


async def test_who_takes_nothing_is_dropped_and_the_others_are_not_held_up(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    """Its connection is cut within the send timeout, and what waited for it is gone.

    Broken once: without cutting the connection the server kept it, and its bytes, for ever.
    """
    async with served(livewell_dsn, server_logins, server_settings, push_send_seconds=0.5) as web:
        store.rows("ALTER TABLE livewell_data.quote ADD filler text DEFAULT repeat('x', 50000)")
        deaf, healthy = await Viewer.come(web), await Viewer.come(web)
        await deaf.subscribe("AAPL")
        await healthy.subscribe("AAPL")
        silent = await deaf.stream(receive_bytes=4096, reads=False)
        async with await healthy.stream() as stream:
            await stream.until("ready")
            for price in range(1, 41):
                put(store, "AAPL", price)
                await priced(stream, "AAPL", price)
                if web.state.streams.dropped:
                    break

            async def dropped() -> bool:
                return web.state.streams.dropped == 1 and web.state.streams.count == 1 and not silent.established

            await eventually_async(dropped, timeout=5, what="the silent one is dropped")
        silent.close()


# -- who may -------------------------------------------------------------------------------------


async def test_no_session_is_the_same_as_anothers(web: Web, store: StoreSession) -> None:
    """Status, headers that matter and body, byte for byte, on every route."""
    theirs, ours = await Viewer.come(web), await Viewer.come(web)
    answers = set()
    for session in (theirs.session, str(uuid.uuid4()), "nonsense", "0" * 36, "x" * 300):
        for method, path, body in (
            ("PUT", "", None),
            ("DELETE", "", None),
            ("PUT", "/subscriptions", ours.body("AAPL")),
            ("DELETE", "/subscriptions", ours.body("AAPL")),
            ("GET", "/stream", None),
        ):
            answer = await ours.client.request(method, f"/v1/sessions/{session}{path}", json=body)
            answers.add((answer.status_code, answer.headers["content-type"], answer.content))
    assert len(answers) == 1
    assert answers.pop()[:2] == (404, "application/problem+json")
    assert (await theirs.client.put(f"/v1/sessions/{theirs.session}")).status_code == 204


async def test_a_stream_needs_both_scopes(web: Web, store: StoreSession) -> None:
    viewer = await Viewer.come(web, "subscribe")
    async with await viewer.stream() as stream:
        assert stream.status == 403


async def test_how_full_the_server_is_is_a_metric(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    """R23, X10: connections, streams and keys, each beside its bound.

    A key that does not fit is counted.
    """
    bounds = {"connections_max": 50, "streams_max": 7, "watched_keys_max": 2}
    before = measures.CAPPED.values.get((), 0)
    async with served(livewell_dsn, server_logins, server_settings, **bounds) as web:
        viewer = await Viewer.come(web)
        await viewer.subscribe("AAPL", "MSFT", "GOOG")
        async with await viewer.stream() as stream:
            await stream.next("capped")
            async with web.as_key("operate") as client:
                page = (await client.get("/v1/metrics")).text

    held = dict(re.findall(r"^livewell_process_held(\S+) (\S+)$", page, re.MULTILINE))
    assert (held['{what="streams"}'], held['_max{what="streams"}']) == ("1.0", "7.0")
    assert (held['{what="keys"}'], held['_max{what="keys"}']) == ("2.0", "2.0")
    assert 2 <= float(held['{what="connections"}']) <= float(held['_max{what="connections"}']) == 50
    assert f"livewell_process_capped_total {before + 1:.1f}" in page


async def test_streams_are_bounded_per_user_and_per_process(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings, store: StoreSession
) -> None:
    """429 for one's own, 503 for all; a stream that replaces another is not one more.

    Who leaves makes room.
    """
    async with served(livewell_dsn, server_logins, server_settings, user_streams_max=2, streams_max=3) as web:
        first = await Viewer.come(web)
        second, third = await Viewer.come(web, key=first.key), await Viewer.come(web, key=first.key)
        open_ones = [await first.stream(), await second.stream()]
        async with await third.stream() as refused:
            assert (refused.status, "retry-after" in refused.headers) == (429, True)
        async with await first.stream() as replaced:
            assert replaced.status == 200
            other, one_more = await Viewer.come(web), await Viewer.come(web)
            async with await other.stream() as last, await one_more.stream() as refused:
                assert (last.status, refused.status) == (200, 503)
        for stream in open_ones:
            stream.close()

        async def empty() -> bool:
            return web.state.streams.count == 0

        await eventually_async(empty, timeout=5, what="all have left")
        async with await third.stream() as stream:
            assert stream.status == 200


async def test_at_the_bound_nobody_learns_whether_somebody_else_is_there(
    livewell_dsn: str, server_logins: Logins, server_settings: Settings
) -> None:
    """A session of somebody else that is streamed, one that is not, and none at all.

    The same answer. Failed when any stream of that name passed the bound.
    """
    async with served(livewell_dsn, server_logins, server_settings, user_streams_max=1) as web:
        mine, streamed, silent = await Viewer.come(web), await Viewer.come(web), await Viewer.come(web)
        async with await mine.stream(), await streamed.stream():
            answers = []
            for session in (streamed.session, silent.session, str(uuid.uuid4())):
                answer = await mine.client.get(f"/v1/sessions/{session}/stream")
                answers.append((answer.status_code, answer.content, answer.headers["retry-after"]))

    assert len(set(answers)) == 1
    assert answers[0][0] == 429


async def test_bad_subscriptions_are_refused(web: Web, store: StoreSession) -> None:
    """None, too many, keys that no database can hold, and what is not a pair."""
    viewer = await Viewer.come(web)
    path = f"/v1/sessions/{viewer.session}/subscriptions"
    wrong: list[Any] = [
        {"subscriptions": []},
        viewer.body(*(f"K{n}" for n in range(1001))),
        {"subscriptions": [{"type": "quote"}]},
        {"subscriptions": [{"type": "quote", "key": "x" * 201}]},
        {"subscriptions": "AAPL"},
        {},
        None,
    ]
    for body in wrong:
        assert (await viewer.client.put(path, json=body)).status_code == 400
    answers = await viewer.subscribe("nul\x00", "../../etc", "a\r\nb", "<b>", "AAPL", "AAPL")
    assert {one["answer"] for key, one in answers.items() if key != "AAPL"} == {"bad_key"}
    assert (await viewer.subscribe("X", of="nosuch"))["X"]["answer"] == "unknown_type"
    assert store.rows("SELECT key FROM livewell.subscription") == [("AAPL",)]
    narrow = await Viewer.come(web, "view", "subscribe", types=["other"])
    assert (await narrow.subscribe("AAPL"))["AAPL"] == {
        "type": "quote", "key": "AAPL", "answer": "forbidden", "verdict": None,
        "source_at": None, "fetched_at": None, "checked_at": None, "age_seconds": None,
    }  # fmt: skip


# -- jobs ----------------------------------------------------------------------------------------


async def test_a_job_is_followed_to_its_end(web: Web, store: StoreSession) -> None:
    """Its record now, each change, and goodbye; without its payload."""
    store.ask("AAPL")
    [(job,)] = store.rows("SELECT id FROM livewell.job")
    key = web.key("view", "operate").text
    async with await EventStream.open(web.base, f"/v1/jobs/{job}/stream", key=key) as stream:
        first = (await stream.next("job"))[1]
        store.rows("SELECT livewell.cancel_job(%s)", job)
        last = (await stream.next("job"))[1]
        assert await stream.next() == ("bye", {"reason": "ended"})
    assert (first["state"], last["state"]) == ("ready", "cancelled")
    assert "payload" not in first


async def test_a_job_that_is_not_there_has_no_stream(web: Web, store: StoreSession) -> None:
    key = web.key("view", "operate").text
    for path, status in (("/v1/jobs/77/stream", 404), ("/v1/jobs/0/stream", 400), ("/v1/jobs/x/stream", 400)):
        async with await EventStream.open(web.base, path, key=key) as stream:
            assert stream.status == status
    async with await EventStream.open(web.base, "/v1/jobs/77/stream", key=web.key("view").text) as stream:
        assert stream.status == 403
