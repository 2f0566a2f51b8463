"""Python and the terminal while the database is away.

Nothing that was read as fresh stays fresh for longer than it is (R22, X1).
"""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from livewell import Livewell, Settings
from livewell.testing.processes import eventually
from livewell.testing.proxy import ThreadedProxy
from tests.support.web_types import STORED, apply_types

CHECKED_NOW = (
    "UPDATE livewell.ledger SET checked_at = now(), source_at = now(), status_at = now(), status_version = "
    "status_version + 1"
)


@pytest.fixture
def proxy(livewell_dsn: str) -> Iterator[ThreadedProxy]:
    parts = conninfo_to_dict(livewell_dsn)
    with ThreadedProxy(str(parts["host"]), int(str(parts["port"]))) as running:
        yield running


@pytest.fixture
def through(livewell_dsn: str, proxy: ThreadedProxy) -> str:
    return make_conninfo("", **{**conninfo_to_dict(livewell_dsn), "host": "127.0.0.1", "port": str(proxy.port)})


async def store(dsn: str, settings: Settings, ttl: str) -> None:
    """A fresh quote."""
    await apply_types(dsn, settings)
    async with Livewell(settings) as app, app.transaction() as tx:
        await tx.execute(f"UPDATE livewell.data_type SET ttl = interval '{ttl}' WHERE name = 'quote'")
        for statement in STORED.strip().rstrip(";").split(";"):
            await tx.execute(statement)


async def test_a_watch_turns_by_itself_and_so_does_a_reading_that_is_kept(
    livewell_dsn: str, livewell_settings: Settings, proxy: ThreadedProxy, through: str
) -> None:
    """app.watch gives the key again, as stale and with its value.

    Reading.now() says the same without asking anybody.

    Seen failing on 0.5.0: the watch said nothing more within 10 s of the cut.
    """
    await store(livewell_dsn, livewell_settings, "2 seconds")
    settings = livewell_settings.model_copy(update={"database_url": SecretStr(through)})
    async with Livewell(settings) as app, aclosing(app.watch("quote", ["AAPL"])) as readings:
        first = await anext(readings)
        proxy.freeze()
        second = await asyncio.wait_for(anext(readings), 10)
        kept = first.now()
        proxy.heal()

    assert (first.verdict, second.verdict, kept.verdict) == ("fresh", "stale", "stale")
    assert first.stale_at is not None
    assert 0 < (first.fresh_for_seconds or 0) <= 2
    assert first.value == second.value == kept.value
    assert (kept.usable, kept.stale_at) == (False, None)


@contextmanager
def terminal(settings: Settings, *arguments: str) -> Iterator[int]:
    """The command line in a terminal of its own; where its output can be read."""
    assert settings.database_url is not None
    environment = {**os.environ, "DATABASE_URL": settings.database_url.get_secret_value(), "COLUMNS": "160"}
    pid, output = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "livewell.cli", *arguments], environment)  # noqa: S606 - our own program
    try:
        yield output
    finally:
        os.kill(pid, signal.SIGINT)
        os.close(output)
        try:
            eventually(lambda: os.waitpid(pid, os.WNOHANG)[0], timeout=30, what="it ends at Ctrl-C")
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise


def read_until(output: int, *words: str, seconds: float = 60) -> str:
    """What is on the terminal until all of these have been seen."""
    os.set_blocking(output, False)
    seen, until = "", time.monotonic() + seconds
    while not all(word in seen for word in words):
        assert time.monotonic() < until, f"no {words} in {seen[-2000:]}"
        try:
            seen += os.read(output, 65_536).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.05)  # the terminal has no event to wait for
    return seen


async def test_the_table_of_watch_turns_and_is_not_torn(
    livewell_dsn: str, livewell_settings: Settings, proxy: ThreadedProxy, through: str
) -> None:
    """It says since when the database is away, the verdict turns, and no log line stands between.

    Seen failing on 0.5.0, which has no words for a database that is away.
    """
    await store(livewell_dsn, livewell_settings, "8 seconds")
    settings = livewell_settings.model_copy(update={"database_url": SecretStr(through)})

    def act() -> tuple[str, str]:
        with terminal(settings, "watch", "quote", "AAPL") as output:
            read_until(output, "AAPL")
            with psycopg.connect(livewell_dsn, autocommit=True) as admin:
                admin.execute(CHECKED_NOW)  # a process may take longer to start than the value lives
            before = read_until(output, "fresh")
            proxy.refuse()
            proxy.reset()
            return before, read_until(output, "Database away since", "stale")

    before, away = await asyncio.to_thread(act)
    proxy.heal()

    assert "Database away" not in before
    assert "error connecting" not in away
    assert "cannot read changes" not in away
