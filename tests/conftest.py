"""For every test: the canary looks for its secrets where they must not be (F-F5, see tests/support/canary.py)."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from livewell.db.embedded.folder import Folder
from livewell.server.auth.api_keys import NewKey
from tests.support import canary
from tests.support.recycled import Recycler

logging.getLogger("httpx2").setLevel(
    logging.WARNING
)  # a client writes down addresses as they are; the server is who must not

_make = NewKey.make


def _watched() -> NewKey:
    made = _make()
    canary.watch(made.secret)
    return made


NewKey.make = _watched  # type: ignore[method-assign] # every key, login and link that is made in this process


@pytest.fixture(scope="session")
def recycler(livewell_server: str, livewell_template: str) -> Iterator[Recycler]:
    """The databases of this process."""
    made = Recycler(livewell_server, livewell_template)
    yield made
    made.close()


@pytest.fixture
def livewell_dsn(recycler: Recycler) -> Iterator[str]:
    """A migrated database of this test's own.

    The plugin's fixture copies one, here it is cleaned and handed on.
    """
    yield recycler.take()
    recycler.give_back()


@pytest.fixture(autouse=True)
def no_secret_is_stored(request: pytest.FixtureRequest) -> Iterator[None]:
    """Looks into the test's database, if it has one, when everything else of the test has ended."""
    dsn = request.getfixturevalue("livewell_dsn") if "livewell_dsn" in request.fixturenames else None
    canary.secrets.clear()
    yield
    if dsn is not None and canary.secrets:
        found = canary.leaks(canary.rows(dsn), canary.secrets)
        assert not found, f"a secret of this test is in {', '.join(found)}"


# What takes seconds each. At the end of a run one process would sit idle while the other has one of
# these left.
LONG = (
    "tests/faults/test_scenarios.py",
    "tests/apps/test_bench.py",
    "tests/apps/test_market_demo.py",
    "tests/apps/test_tutorial.py",
    "tests/browser/",
    "tests/integration/server/test_openapi.py",
    "tests/model/",
)


def pytest_configure() -> None:
    """Hear Ctrl-C also in a run that a shell began in the background, which ignores it.

    Children would inherit that, and tests that interrupt them would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first; within each part the order stays."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the test printed and logged."""
    report = yield
    if call.when == "teardown" and canary.secrets:
        found = canary.leaks(dict(report.sections), canary.secrets)
        if found:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: a secret of this test is in its {', '.join(found)}"
            report.sections = []
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """What Postgres wrote down.

    Before that: what still refers to itself goes now, not while a plugin is compiled, where Python
    3.11 takes it for an overflow ("AST constructor recursion depth mismatch").
    """
    gc.collect()
    root = Path(os.environ.get("LIVEWELL_TEST_DATA_DIR", "nowhere"))
    if not root.exists() or not canary.ever:
        return  # no test asked for the server of the run
    if canary.leaks({"log": Folder(root).log.read_text(errors="replace")}, canary.ever):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        raise pytest.UsageError("a secret of some test is in the log of Postgres")
