"""The hub on a real database.

What is stored reaches every follower here, once, latest first, and nothing is missed on the way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import psycopg
import pytest

from livewell import Settings
from livewell.db import Database, scratch
from livewell.db.nudge import Nudger
from livewell.errors import InvalidOption
from livewell.refresh.nudges import CHANGED
from livewell.refresh.push.follower import Follower
from livewell.refresh.push.hub import Hub
from livewell.refresh.push.key_state import KeyState, Pair
from livewell.refresh.verdict_clock import clock
from tests.support.store_sql import StoreSession

AAPL, MSFT = ("quote", "AAPL"), ("quote", "MSFT")


def value_of(state: KeyState) -> Any:
    return None if state.text is None else orjson.loads(state.text)


class Stage:
    """A hub, and a hand that stores."""

    def __init__(self, database: Database, nudger: Nudger, session: StoreSession) -> None:
        self.database = database
        self.nudger = nudger
        self.session = session
        self.hub = Hub(database, nudger)

    def store(self, key: str, price: float, *, late: float = 0.0) -> None:
        """A value as a worker stores it.

        Late: its time was read so many seconds before its commit.
        """
        self.session.put(key, price, late=late)

    async def scanned(self, times: int) -> None:
        """Wait until the hub has asked so many times more what changed."""
        until = self.hub.scans + times
        async with asyncio.timeout(10):
            while self.hub.scans < until:  # noqa: ASYNC110 - a counter has no event
                await asyncio.sleep(0.005)

    async def prices(self, follower: Follower, wanted: dict[str, float | None], seconds: float = 10) -> list[KeyState]:
        """Take until every key has this price; all that came on the way."""
        seen: list[KeyState] = []
        has: dict[str, float | None] = {}
        async with asyncio.timeout(seconds):
            while any(has.get(key, -1) != price for key, price in wanted.items()):
                for state in await follower.take():
                    seen.append(state)
                    value = value_of(state)
                    has[state.key] = None if value is None else value["price"]
        return seen


@asynccontextmanager
async def staged(settings: Settings, **changes: Any) -> AsyncIterator[Stage]:
    changed = settings.model_copy(update={"poll_seconds": 0.05, "push_compare_seconds": 600, **changes})
    assert changed.database_url is not None
    dsn = changed.database_url.get_secret_value()
    scratch.TestClock(dsn)
    database = Database(dsn, changed)
    await database.open()
    nudger = Nudger(database)
    with StoreSession(dsn) as session:
        session.reset()
        stage = Stage(database, nudger, session)
        try:
            yield stage
        finally:
            await stage.hub.close()
            await nudger.close()
            await database.close()


@pytest.fixture
async def stage(livewell_settings: Settings) -> AsyncIterator[Stage]:
    async with staged(livewell_settings) as opened:
        yield opened


class Gate:
    """Holds the answers of some calls back until it is opened."""

    def __init__(self, database: Database, needle: str) -> None:
        self._call: Callable[..., Awaitable[list[Any]]] = database.call
        self._needle = needle
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.armed = False
        database.call = self._held  # type: ignore[method-assign] # the seam is the call itself

    async def _held(self, query: str, params: Sequence[Any] = (), **options: Any) -> list[Any]:
        rows = await self._call(query, params, **options)
        if self.armed and self._needle in query:
            self.armed = False
            self.reached.set()
            await self.open.wait()
        return rows


# -- nothing is missed ---------------------------------------------------------------------------


async def test_the_state_comes_first_and_then_what_changes(stage: Stage) -> None:
    """Missing for what nobody asked for.

    A store is seen within the poll interval without any nudge.
    """
    stage.store("AAPL", 1)
    follower = stage.hub.follow([AAPL, MSFT])

    await stage.prices(follower, {"AAPL": 1, "MSFT": None})
    stage.store("MSFT", 5)

    [state] = await stage.prices(follower, {"MSFT": 5})
    assert (state.pair, state.verdict, follower.awaited) == (MSFT, "fresh", set())


async def test_a_store_between_register_and_snapshot_is_not_missed(stage: Stage) -> None:
    """It commits while the answer of the first read is on its way; the next pass tells it.

    Broken once: with the cursor taken after the read and no look back, the follower kept the old
    price.
    """
    stage.store("AAPL", 1)
    gate = Gate(stage.database, "read_readings")
    gate.armed = True
    follower = stage.hub.follow([AAPL])
    await gate.reached.wait()
    stage.store("AAPL", 2)  # the answer that waits says 1
    gate.open.set()

    seen = await stage.prices(follower, {"AAPL": 2})

    assert [state.version for state in seen] in ([1, 2], [2])


async def test_a_late_commit_is_found_by_looking_back(stage: Stage) -> None:
    """Its time is eight seconds behind the cursor, as of a store that took so long.

    Broken once: looking back half a second always, as nudges do, this ran into its timeout.
    """
    stage.store("AAPL", 1)
    follower = stage.hub.follow([AAPL])
    await stage.prices(follower, {"AAPL": 1})
    await stage.scanned(2)

    stage.store("AAPL", 2, late=8)

    await stage.prices(follower, {"AAPL": 2}, seconds=3)


async def test_a_very_late_commit_is_found_by_the_comparison(livewell_settings: Settings) -> None:
    """Its time is five minutes behind the cursor: no look back finds it, comparing everything does.

    Broken once: with a comparison every ten minutes this ran into its timeout.
    """
    async with staged(livewell_settings, push_compare_seconds=1) as stage:
        stage.store("AAPL", 1)
        follower = stage.hub.follow([AAPL])
        await stage.prices(follower, {"AAPL": 1})

        stage.store("AAPL", 2, late=300)

        await stage.prices(follower, {"AAPL": 2}, seconds=5)


async def test_a_transaction_that_commits_behind_the_cursor_is_seen(stage: Stage) -> None:
    """The real thing: another store overtakes it, the cursor moves on, and then it commits.

    Written by hand, as a store that is as slow would also hold what the other one needs.
    """
    stage.store("AAPL", 1)
    follower = stage.hub.follow([AAPL, MSFT])
    await stage.prices(follower, {"AAPL": 1, "MSFT": None})
    with psycopg.connect(stage.database.conninfo) as slow:
        slow.execute("UPDATE livewell_data.quote SET price = 3")
        slow.execute(
            "UPDATE livewell.ledger SET version = version + 1, status_version = status_version + 1,"
            " status_at = livewell.now() - interval '0.8 seconds'"  # nudges look back for less
        )
        stage.store("MSFT", 2)
        await stage.prices(follower, {"MSFT": 2})
        slow.commit()

    await stage.prices(follower, {"AAPL": 3}, seconds=3)


async def test_a_hub_that_was_started_without_followers_polls_for_the_first_one(stage: Stage) -> None:
    """No nudge comes, and nothing is to be read at first.

    It rested for ever before it was mended.
    """
    heard = asyncio.Event()
    stage.hub.hear(lambda _: heard.set())
    stage.hub.start()
    await heard.wait()  # its listener wakes it once,
    await asyncio.sleep(0.1)  # and then it rests
    follower = stage.hub.follow([("quote", "AAPL")], read=False)
    stage.store("AAPL", 1)

    async with asyncio.timeout(5):
        while (await follower.take())[0].version == 0:
            continue


async def test_a_nudge_is_faster_than_the_poll_interval(livewell_settings: Settings) -> None:
    """A second would pass otherwise."""
    async with staged(livewell_settings, poll_seconds=30) as stage:
        heard = asyncio.Event()
        stage.hub.hear(lambda _: heard.set())
        follower = stage.hub.follow([AAPL])
        await stage.prices(follower, {"AAPL": None})
        await heard.wait()  # it listens, and has looked once more
        await asyncio.sleep(0.1)
        stage.store("AAPL", 1)
        begun = time.monotonic()
        with psycopg.connect(stage.database.conninfo, autocommit=True) as other:
            other.execute("SELECT pg_notify('livewell', %s)", (CHANGED,))

        await stage.prices(follower, {"AAPL": 1})
        assert time.monotonic() - begun < 5


async def test_a_verdict_turns_by_time_alone(livewell_settings: Settings) -> None:
    """Fresh becomes stale at its time.

    Nothing was stored, no nudge came, and neither poll nor comparison was due.

    Broken once: without the heap it ran into its timeout.
    """
    async with staged(livewell_settings, poll_seconds=60) as stage:
        stage.session.rows("UPDATE livewell.data_type SET ttl = interval '1.5 seconds'")
        stage.store("AAPL", 1)
        follower = stage.hub.follow([AAPL])
        seen: list[KeyState] = []
        async with asyncio.timeout(5):
            while not seen or seen[-1].verdict != "stale":
                seen += await follower.take()

    assert [(state.verdict, state.version, value_of(state)) for state in seen] == [
        ("fresh", 1, {"price": 1}),
        ("stale", 1, {"price": 1}),
    ]


async def test_a_key_that_is_left_and_followed_again_while_it_is_read_keeps_its_value(stage: Stage) -> None:
    """The answer on its way leaves the value out, because it was known when it was asked.

    Broken once, before it was ever right: the newcomer was told version 1 with no value, and
    nothing ever mended it.
    """
    stage.store("AAPL", 1)
    first = stage.hub.follow([AAPL])
    await stage.prices(first, {"AAPL": 1})
    gate = Gate(stage.database, "read_readings")
    gate.armed = True
    stage.session.rows("UPDATE livewell.ledger SET status_version = status_version + 1, status_at = livewell.now()")
    await gate.reached.wait()
    stage.hub.unfollow(first)
    second = stage.hub.follow([AAPL])
    gate.open.set()

    seen = await stage.prices(second, {"AAPL": 1})

    assert {value_of(state)["price"] for state in seen} == {1}


async def test_a_key_of_a_type_that_is_gone_is_missing(stage: Stage) -> None:
    """Whoever waits for the whole snapshot is not kept waiting."""
    follower = stage.hub.follow([("nosuch", "X")])

    [state] = await follower.take()

    assert (state.verdict, state.version, follower.awaited) == ("missing", 0, set())


async def test_an_outage_is_survived(stage: Stage) -> None:
    """Every connection is cut, twice; what was stored meanwhile arrives."""
    follower = stage.hub.follow([AAPL])
    await stage.prices(follower, {"AAPL": None})
    for price in (1, 2):
        stage.session.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid "
            "<> pg_backend_pid()"
        )
        stage.store("AAPL", price)
        await stage.prices(follower, {"AAPL": price}, seconds=20)


# -- once, and the latest ------------------------------------------------------------------------


async def test_a_slow_follower_gets_the_latest_and_no_backlog(stage: Stage) -> None:
    """Twenty stores while it does not look: one state, the last.

    A quick one beside it is not held up.
    """
    slow, quick = stage.hub.follow([AAPL]), stage.hub.follow([AAPL])
    await stage.prices(slow, {"AAPL": None})
    for price in range(1, 21):
        stage.store("AAPL", price)
        await stage.prices(quick, {"AAPL": price})

    [state] = await slow.take()

    assert (state.version, value_of(state)) == (20, {"price": 20})


async def test_a_key_is_read_and_serialised_once_for_all_its_followers(stage: Stage) -> None:
    """A hundred followers: the same state, the same bytes, and not a query more than for one."""
    stage.store("AAPL", 1)
    followers = [stage.hub.follow([AAPL]) for _ in range(100)]
    states = [(await follower.take())[0] for follower in followers]
    reads = stage.hub.reads
    stage.store("AAPL", 2)
    for follower in followers:
        [state] = await stage.prices(follower, {"AAPL": 2})
        states.append(state)

    assert stage.hub.reads == reads + 1
    assert len({id(state) for state in states}) == 2
    assert len({id(state.body(value=True, numbers="number")) for state in states}) == 2


async def test_at_rest_nothing_is_read(stage: Stage) -> None:
    """Only the question what changed is asked, at every poll interval.

    Without followers not even that.
    """
    stage.store("AAPL", 1)
    follower = stage.hub.follow([AAPL])
    await stage.prices(follower, {"AAPL": 1})
    await stage.scanned(3)  # the last of them after its listener has woken it
    reads, begun = stage.hub.reads, time.monotonic()
    await stage.scanned(4)
    assert stage.hub.reads == reads
    assert time.monotonic() - begun > 3 * 0.05  # the poll interval

    stage.hub.unfollow(follower)
    await asyncio.sleep(0.06)  # a pass that was under way
    scans = stage.hub.scans
    await asyncio.sleep(0.15)  # three poll intervals
    assert (stage.hub.scans, stage.hub.followed) == (scans, 0)


async def test_keys_come_and_go_with_their_followers(livewell_settings: Settings) -> None:
    """What nobody follows is not told, what is added later comes with its state.

    Beyond the bound it is left out or refused, and nothing has changed.
    """
    async with staged(livewell_settings, watched_keys_max=2) as stage:
        stage.store("AAPL", 1)
        stage.store("MSFT", 2)
        follower = stage.hub.follow([AAPL])
        await stage.prices(follower, {"AAPL": 1})
        stage.hub.extend(follower, [MSFT])
        await stage.prices(follower, {"MSFT": 2})
        assert stage.hub.extend(follower, [("quote", "IBM")]) == [("quote", "IBM")]
        with pytest.raises(InvalidOption, match="LIVEWELL_WATCHED_KEYS_MAX"):
            stage.hub.follow([AAPL, ("quote", "IBM")])
        stage.hub.reduce(follower, [AAPL])
        stage.store("AAPL", 3)
        stage.store("MSFT", 4)

        assert {state.pair for state in await stage.prices(follower, {"MSFT": 4})} == {MSFT}
        assert follower.keys == {MSFT}


async def test_the_document_is_exact_and_says_nothing_of_errors(stage: Stage) -> None:
    """Numbers digit by digit, times in UTC, the closed word and never the text.

    Without the value where it is not wanted.
    """
    stage.store("AAPL", 1)
    stage.session.rows("UPDATE livewell_data.quote SET price = 123456789012345678.000000000000000001")
    stage.session.rows("UPDATE livewell.ledger SET reason = 'timeout', error = 'secret detail'")
    follower = stage.hub.follow([AAPL])
    [state] = await follower.take()

    whole, brief = state.document(value=True), state.document(value=False)

    assert b'"value":{"price": 123456789012345678.000000000000000001}' in whole
    assert set(orjson.loads(whole)) - set(orjson.loads(brief)) == {"value"}
    assert orjson.loads(brief)["fetched_at"].endswith("Z")
    assert (orjson.loads(brief)["reason"], b"secret" in whole) == ("timeout", False)


async def test_the_heap_of_turning_verdicts_stays_small(stage: Stage) -> None:
    """A hundred stores of one key leave one entry that counts, and few others."""
    follower = stage.hub.follow([AAPL])
    await stage.prices(follower, {"AAPL": None})
    pair: Pair = AAPL
    for _ in range(5000):
        stage.hub._turn(pair, 60.0)
    stage.store("AAPL", 1)
    await stage.prices(follower, {"AAPL": 1})

    assert len(stage.hub._turns) == 1
    assert len(stage.hub._heap) <= 1002


async def test_values_beyond_the_bound_are_let_go_and_read_again_for_who_comes(livewell_settings: Settings) -> None:
    """The hub keeps states of all and values of some.

    The next follower gets every value all the same, the others hear nothing twice.
    """
    async with staged(livewell_settings, watched_bytes_max=40) as stage:
        prices = {f"K{n}": n + 1.0 for n in range(10)}
        for key, price in prices.items():
            stage.store(key, price)
        keys = [("quote", key) for key in prices]
        first = stage.hub.follow(keys)
        await stage.prices(first, dict(prices))
        assert 0 < stage.hub._known.bytes <= 40

        second = stage.hub.follow(keys)
        seen = await stage.prices(second, dict(prices))
        assert len(seen) == 10
        assert 0 < stage.hub._known.bytes <= 40

        stage.store("K0", 99.0)
        assert [state.key for state in await stage.prices(first, {"K0": 99.0})] == ["K0"]
        await stage.prices(second, {"K0": 99.0})
        stage.hub.unfollow(first)
        stage.hub.unfollow(second)
        assert stage.hub._known.bytes == 0


# -- nothing stays fresh while the database is away (R22) ----------------------------------------


async def test_a_verdict_turns_by_itself_while_the_database_says_nothing(livewell_settings: Settings) -> None:
    """X1, R22: frozen in the middle of a read.

    Everybody who follows is told that it is stale, the value stays, and afterwards they hear what
    is true.

    Seen failing: followers were told nothing until the database answered, and whoever came
    meanwhile was given "fresh" from memory.
    """
    async with staged(livewell_settings) as stage:
        stage.session.connection.execute("UPDATE livewell.data_type SET ttl = interval '1 second' WHERE name = 'quote'")
        stage.store("AAPL", 1)
        follower = stage.hub.follow([AAPL])
        [fresh] = await stage.prices(follower, {"AAPL": 1})
        gate = Gate(stage.database, "read_readings")
        gate.armed = True
        await gate.reached.wait()  # it reads again when the verdict turns, and is not answered

        async with asyncio.timeout(5):
            [turned] = await follower.take()
        [seen_later] = await stage.hub.follow([AAPL]).take()
        gate.open.set()
        stage.store("AAPL", 2)
        [back] = await stage.prices(follower, {"AAPL": 2})

    assert (fresh.verdict, turned.verdict, seen_later.verdict, back.verdict) == ("fresh", "stale", "stale", "fresh")
    assert (turned.version, value_of(turned), turned.stale_at) == (fresh.version, {"price": 1}, None)


async def test_an_answer_that_was_held_up_is_not_the_fresher_for_it(stage: Stage) -> None:
    """R22: counted from before the database was asked.

    Broken once: counted from the answer, which a frozen connection had kept for long, it was fresh
    for as long again.
    """
    stage.store("AAPL", 1)
    [state] = await stage.prices(stage.hub.follow([AAPL]), {"AAPL": 1})
    row = ("fresh", None, None, None, 1, 1, None, None, "{}", state.stale_at, 60.0, 0.0)

    held = KeyState(AAPL, row, asked_at=clock() - 61)

    assert (held.now().verdict, state.now().verdict) == ("stale", "fresh")
    assert orjson.loads(held.now().document())["fresh_for_seconds"] is None
    assert 0 < orjson.loads(state.document())["fresh_for_seconds"] <= 60
