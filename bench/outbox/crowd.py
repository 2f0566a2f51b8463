"""Who suffers from others: a quiet tenant beside a million events, keys beside keys that fail."""

from __future__ import annotations

import time

import psycopg

from bench.children import ChildFailed, ask
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.outbox.emit import latency
from bench.outbox.lab import SYSTEM, Lab, feed, one, relay, work_off

HEALTHY = "none failing"
_GAP_SECONDS = (0.1, 0.1)  # between two events of the quiet tenant: ten a second
_PER_SECOND = 10
_BEGIN_SECONDS_MAX = 60.0
_SENT = "SELECT count(*) FROM livewell.event_sent"
_LEFT = "SELECT count(*) FROM livewell.event_delivery"


def _crowded(lab: Lab) -> str:
    """A database with the backlog of the busy tenant; made when it is asked for first."""

    def make(dsn: str) -> None:
        lab.say("making a database with a backlog …")
        ask(SYSTEM, "install", dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            feed(connection, lab.sizes.backlog, keys=lab.sizes.keys, tenant="busy")
            connection.execute("VACUUM (ANALYZE) livewell.event_delivery, livewell.event")

    return lab.server.template("outbox crowded", make)


def _fair(lab: Lab, *, crowded: bool) -> Figures:
    """The quiet tenant's events, from their commits to the sink."""
    with (
        lab.database(_crowded(lab) if crowded else None) as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
        relay(database, sink="noting", event_seconds=lab.sizes.fair_event_us / 1e6) as worker,
    ):
        worker.tell("go")
        give_up = time.monotonic() + _BEGIN_SECONDS_MAX
        while crowded and not one(connection, _SENT) and time.monotonic() < give_up:
            time.sleep(0.01)
        events = _PER_SECOND * lab.sizes.fair_seconds
        sent = ask(SYSTEM, "send", database.dsn, events=events, gap_seconds=_GAP_SECONDS)["sent"]
        left = one(connection, _LEFT)
        if crowded and left <= 1:
            raise ChildFailed("bench: fair: the backlog was gone before the quiet tenant had emitted everything")
        worker.wait(lambda: worker.done >= len(sent))
        worker.tell("stop")
        answer = worker.answer()
    return latency(sent, answer["starts"]) | {"left": left, "batch_ms": 1000 * answer["batch_seconds"]}


def _fair_figures(lab: Lab) -> Figures:
    """Alone, then beside the backlog.

    The bound has both: twice the one, and one batch of the other.
    """
    alone, beside = _fair(lab, crowded=False), _fair(lab, crowded=True)
    return beside | {
        "alone_p99_ms": alone["p99_ms"],
        "share_of_bound": beside["p99_ms"] / (2 * alone["p99_ms"] + beside["batch_ms"]),
    }


def _failing(lab: Lab, sink: str) -> Figures:
    """The pace of the events whose keys do not fail: a hundredth of the keys always does."""
    events = lab.sizes.failing
    keys = min(lab.sizes.keys, events)
    others = events - sum(str(n % keys).endswith("00") for n in range(events))
    with lab.database() as database, psycopg.connect(database.dsn, autocommit=True) as connection:
        feed(connection, events, keys=keys)
        answer = work_off(database, others if sink == "failing" else events, sink=sink)
    done = others if sink == "failing" else events
    return {"events_per_second": done / (answer["last"] - answer["first"])}


LINES: tuple[Line[Lab], ...] = (
    Line(
        "fair",
        "a tenant's event beside 1,000,000 of another, to the bound",
        (Check("fair", "share_of_bound", 1.0, at_most=True),),
        lambda lab: [Contender("livewell", lambda: _fair_figures(lab))],
    ),
    Line(
        "failing",
        "other keys while a hundredth of 10,000 fails",
        (Check("failing", "events_per_second", 0.95, against=HEALTHY),),
        lambda lab: [
            Contender("livewell", lambda: _failing(lab, "failing")),
            Contender(HEALTHY, lambda: _failing(lab, "picky")),
        ],
    ),
)
