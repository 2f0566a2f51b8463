"""Every page of the dashboard with a million live jobs, ten million rows of history, a hundred
thousand dead letters and three hundred thousand subscriptions.

A sample is one request on a connection that stays open, from its first byte sent to the last byte
of the page. All pages are asked in turn, so the sample of the system's state that they share is as
old as it is for people. `bytes` is a page with the styles and scripts that it names.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx2
import psycopg

from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.operations.lab import Lab
from bench.operations.state import crowded
from bench.push.lab import Served, served
from bench.refresh.lab import symbols
from bench.server import Database
from livewell.capability import capabilities

_ROUNDS = 20
_WARM_UP = 2
_DEAD_PER_SESSION = 1  # a hundred thousand with the usual size
# What shows parts, and what leads to another address.
_NO_PAGES = {"/ui", "/work/look", "/acts/new"}
# One page of each kind, lists with filters, and the question before an act on many.
_ONES = (
    "/types/quote_0",
    "/types/quote_0?show=fresh",
    f"/types/quote_0/{symbols(1)[0]}",
    "/work/jobs/500000",
    "/work/jobs?queue=work_1&task=task",
    "/work/jobs?queue=work_1&task=nothing",
    "/work/jobs?state=failed&queue=work_1",
    "/dead/100000001",
    "/dead?queue=work_1&task=nothing",
    "/acts/new?action=cancel&queue=work_1&at=2100-01-01T00%3A00%3A00%2B00%3A00&request=bench",
    "/acts/new?action=discard&task=nothing&at=2100-01-01T00%3A00%3A00%2B00%3A00&request=bench",
)
_ASSET = re.compile(r'(?:src|href)="(/static/[^"]+\.(?:js|css))"')
_IMPORT = re.compile(r'from "\./([\w-]+\.js)"')
_DEAD = """
INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, lane, queue, kind, reason, payload, error)
SELECT 100000000 + n, livewell.now(), livewell.now() - n * interval '1 second', 5, 5, 0, 0, 1, 'work_' || n %% 5, 'task_' || n %% 7, (ARRAY['attempts', 'refused', 'payload', 'lost'])[n %% 4 + 1],
       '{"customer": 1}', 'the upstream answered ' || 500 + n %% 9
FROM generate_series(1, %s) AS n
"""


@contextmanager
def dashboard(lab: Lab) -> Iterator[Served]:
    """A server on the crowded database, and a key that may look."""
    with lab.server.database(crowded(lab)) as database:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute(_DEAD, (lab.sizes.sessions * _DEAD_PER_SESSION,))
            connection.execute("VACUUM (ANALYZE) livewell.dead_job")
        database.checkpoint()
        with served(database, "operate", "view") as running:
            yield running


def addresses() -> list[str]:
    """Every page that needs no name, and one of each that does."""
    plain = [view.path for one in capabilities() for view in one.views if "{" not in view.path]
    return [*(path for path in plain if path not in _NO_PAGES), *_ONES]


def _measure(lab: Lab) -> Figures:
    with dashboard(lab) as running, _client(running) as client:
        paths = addresses()
        took: dict[str, list[float]] = {path: [] for path in paths}
        statements: dict[str, int] = {}
        for turn in range(_WARM_UP + _ROUNDS):
            for path in paths:
                before = _statements(running.database) if turn == _WARM_UP else 0
                began = time.perf_counter()
                answer = client.get(path)
                took[path].append(1000 * (time.perf_counter() - began))
                if answer.status_code != 200 or 'data-state="failed"' in answer.text:
                    raise RuntimeError(f"{path}: {answer.status_code}, or a panel failed")
                if turn == _WARM_UP:
                    statements[path] = _statements(running.database) - before
        p95 = {path: _p95(samples[_WARM_UP:]) for path, samples in took.items()}
        sizes = {path: _bytes(client, path) for path in paths}
    slowest = max(p95, key=lambda path: p95[path])
    most = max(statements, key=lambda path: statements[path])
    largest = max(sizes, key=lambda path: sizes[path])
    lab.say(f"slowest {slowest} {p95[slowest]:.0f} ms, most statements {most}, largest {largest}; {len(paths)} pages")
    return {
        "p95_ms": p95[slowest],
        "median_ms": statistics.median(p95.values()),
        "statements": statements[most],
        "kb": sizes[largest] / 1000,
        "pages": len(paths),
    }


@contextmanager
def _client(running: Served) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {running.key}"}
    with httpx2.Client(base_url=running.base, headers=headers, timeout=10, trust_env=False) as client:
        yield client


def _p95(samples: Sequence[float]) -> float:
    return statistics.quantiles(samples, n=20, method="inclusive")[18]


def _statements(database: Database) -> int:
    return database.read().calls


def _bytes(client: httpx2.Client, path: str) -> int:
    """The page, and every style and script that it names, directly or by an import."""
    page = client.get(path)
    waiting, seen, total = set(_ASSET.findall(page.text)), set[str](), len(page.content)
    while waiting:
        address = waiting.pop()
        seen.add(address)
        file = client.get(address)
        total += len(file.content)
        folder = address.rsplit("/", 1)[0]
        waiting |= {f"{folder}/{name}" for name in _IMPORT.findall(file.text)} - seen
    return total


LINES: tuple[Line[Lab], ...] = (
    Line(
        "pages",
        "every page with 1,000,000 live jobs, 10,000,000 rows of history, 100,000 dead letters, 300,000 subscriptions",
        (
            Check("pages/p95", "p95_ms", 300.0, at_most=True),
            Check("pages/statements", "statements", 5.0, at_most=True),
            Check("pages/kb", "kb", 150.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _measure(lab))],
    ),
)
