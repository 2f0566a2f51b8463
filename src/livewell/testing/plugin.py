"""pytest fixtures: a Postgres for the run, a migrated database per test, a clock, and an inline worker.

    async def test_welcome(livewell_settings):
        async with opened(app, livewell_settings): …

An async test that names one of these fixtures needs no mark and no asyncio_mode: the plugin marks
it for pytest-asyncio (`pip install "livewell[test]"`).

LIVEWELL_TEST_DSN chooses a server of your own (a role that may create databases); otherwise an
embedded one runs for the session, shared by all xdist workers.
"""

from __future__ import annotations

import inspect
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from livewell.db.scratch import TestClock
    from livewell.settings import Settings

_FOLDER = "LIVEWELL_TEST_DATA_DIR"
_MINE = pytest.StashKey[Path]()
_RUNNERS = {"asyncio", "anyio", "trio"}
_START_SECONDS_MAX = 300  # on a machine that is busy with many tests, half a minute was too short


def pytest_configure(config: pytest.Config) -> None:
    """Choose one folder for the whole run; xdist workers inherit it through the environment."""
    if hasattr(config, "workerinput") or "LIVEWELL_TEST_DSN" in os.environ or _FOLDER in os.environ:
        return
    config.stash[_MINE] = Path(tempfile.gettempdir()) / f"livewell-test-{os.getpid()}-{secrets.token_hex(4)}"
    os.environ[_FOLDER] = str(config.stash[_MINE])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server of this run, if one was started, and remove its folder."""
    folder = config.stash.get(_MINE, None)
    if folder is None:
        return
    os.environ.pop(_FOLDER, None)
    if folder.exists():
        from livewell.db import embedded  # noqa: PLC0415 - the plugin is loaded by every pytest run of whoever has Livewell installed

        embedded.stop(folder, mode="immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, obj: object) -> None:
    """Mark async tests that use our fixtures for pytest-asyncio, whatever its mode is.

    A test that is already marked for a runner is left alone.
    """
    if not inspect.iscoroutinefunction(obj) or not collector.config.pluginmanager.hasplugin("asyncio"):
        return
    ours = any(name.startswith("livewell_") for name in inspect.signature(obj).parameters)
    marked = {mark.name for mark in (*getattr(obj, "pytestmark", ()), *collector.iter_markers())}
    if ours and not marked & _RUNNERS:
        pytest.mark.asyncio(obj)


@pytest.fixture(scope="session")
def livewell_server() -> str:
    """The address of a server where databases may be created."""
    if "LIVEWELL_TEST_DSN" in os.environ:
        return os.environ["LIVEWELL_TEST_DSN"]
    from livewell.db import embedded  # noqa: PLC0415 - see above

    # Nothing here survives the run, so nothing needs to reach the disk. Tests about crashes start
    # servers of their own. A backend that waits for a client's password answers no barrier, and
    # DROP DATABASE waits for every backend: one login that a test cut off in its middle held up
    # each drop of the run for authentication_timeout (60 s).
    fast = {
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_wal_size": "4GB",
        "checkpoint_timeout": "1h",
        "jit": "off",
        "scram_iterations": "1",  # of the passwords that tests set: 4,096 cost both sides 5 ms a connection
        "max_connections": "300",
        "authentication_timeout": "5s",
    }
    return embedded.start(Path(os.environ[_FOLDER]), parameters=fast, wait_seconds=_START_SECONDS_MAX).dsn


@pytest.fixture(scope="session")
def livewell_template(livewell_server: str) -> str:
    """The name of a migrated template database."""
    from livewell.db import scratch  # noqa: PLC0415 - see above
    from livewell.version import VERSION  # noqa: PLC0415 - see above

    run = (
        Path(os.environ[_FOLDER]).name[-8:]
        if _FOLDER in os.environ
        else os.environ.get("PYTEST_XDIST_TESTRUNUID", secrets.token_hex(4))[:8]
    )
    name = f"livewell_template_{VERSION.replace('.', '_')}_{run}"
    scratch.make_template(livewell_server, name)
    return name


@pytest.fixture
def livewell_dsn(livewell_server: str, livewell_template: str) -> Iterator[str]:
    """A migrated database of this test's own."""
    from livewell.db import scratch  # noqa: PLC0415 - see above

    name = f"livewell_test_{secrets.token_hex(6)}"
    yield scratch.clone(livewell_server, livewell_template, name)
    scratch.drop(livewell_server, name)


@pytest.fixture
def livewell_settings(livewell_dsn: str) -> Settings:
    """Settings for that database, with short intervals."""
    from pydantic import SecretStr  # noqa: PLC0415 - see above

    from livewell.settings import Settings  # noqa: PLC0415 - see above

    return Settings(
        database_url=SecretStr(livewell_dsn),
        lease_seconds=2,
        heartbeat_seconds=0.2,
        poll_seconds=0.2,
        maintain_seconds=0.2,
        grace_seconds=5,
        listen_check_seconds=1,
    )


@pytest.fixture
def livewell_clock(livewell_dsn: str) -> TestClock:
    """Moves the database's clock: `livewell_clock.advance(60)`."""
    from livewell.db.scratch import TestClock  # noqa: PLC0415 - see above

    return TestClock(livewell_dsn)
