"""Resolve three identities with a million contacts: known people, new people, and a crowd about one.

One client gives the latency, eight clients at once the rate; each call is a transaction of its own,
round trip and commit included. The crowd adds an identity each to one contact: who waits for its
lock must not delay the others, who look up strangers to it meanwhile.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg

from bench.contacts.lab import TENANT, Lab
from bench.line import Check, Contender, Line
from bench.measure import Figures

_RESOLVE = b"SELECT livewell.resolve_contact(%s, '{email,external_id,phone}', %s)"
_ADD = b"SELECT livewell.resolve_contact(%s, '{email,device}', %s)"
_POLICY = "SELECT livewell.set_identity_policy(%s, 'device', p_max => 10000)"
_WARM_UP = 200
_CROWD_CLIENTS = 16

Call = Callable[[psycopg.Connection[tuple[object, ...]]], object]


def _values(name: object) -> list[str]:
    return [f"person{name}@example.com", f"acct_{name}", f"+49 30 {name}"]


def _calls(lab: Lab) -> dict[str, Call]:
    """Somebody who is known, and somebody who is not."""
    dice, numbers = random.Random(1), count()

    def known(connection: psycopg.Connection[tuple[object, ...]]) -> object:
        return connection.execute(_RESOLVE, (TENANT, _values(dice.randint(1, lab.sizes.contacts)))).fetchone()

    def new(connection: psycopg.Connection[tuple[object, ...]]) -> object:
        return connection.execute(_RESOLVE, (TENANT, _values(f"new{next(numbers)}"))).fetchone()

    return {"known": known, "new": new}


def resolve(lab: Lab) -> Figures:
    """Median latency of one client, and calls a second of eight, of both kinds."""
    figures: dict[str, float] = {}
    with lab.server.database(lab.crowded()) as database:
        for name, call in _calls(lab).items():
            with psycopg.connect(database.dsn, autocommit=True) as connection:
                took = [_timed(connection, call) for _ in range(_WARM_UP + lab.sizes.calls // 10)][_WARM_UP:]
            figures[f"{name}_p50_ms"] = statistics.median(took)
            figures[f"{name}_per_second"] = _rate(database.dsn, call, lab)
    return figures


def crowd(lab: Lab) -> Figures:
    """A thousand calls at once about one contact, beside a client that looks up others."""
    done, others = threading.Event(), _calls(lab)["known"]
    with lab.server.database(lab.crowded()) as database:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute(_POLICY.encode(), (TENANT,))
            alone = [_timed(connection, others) for _ in range(_WARM_UP * 2)][_WARM_UP:]

        def client(number: int) -> None:
            with psycopg.connect(database.dsn, autocommit=True) as connection:
                for n in range(number, lab.sizes.crowd, _CROWD_CLIENTS):
                    connection.execute(_ADD, (TENANT, ["person1@example.com", f"device-{n}"]))

        def bystander() -> list[float]:
            with psycopg.connect(database.dsn, autocommit=True) as connection:
                took = []
                while not done.is_set():
                    took.append(_timed(connection, others))
                return took

        with ThreadPoolExecutor(_CROWD_CLIENTS + 1) as pool:
            beside = pool.submit(bystander)
            started = time.perf_counter()
            for one in [pool.submit(client, number) for number in range(_CROWD_CLIENTS)]:
                one.result()
            seconds = time.perf_counter() - started
            done.set()
        with psycopg.connect(database.dsn) as connection:
            query = "SELECT count(*), count(DISTINCT contact_id) FROM livewell.contact_identity WHERE type = 'device'"
            assert connection.execute(query).fetchone() == (lab.sizes.crowd, 1)
    return {
        "crowd_per_second": lab.sizes.crowd / seconds,
        "alone_p50_ms": statistics.median(alone),
        "beside_p50_ms": statistics.median(beside.result()),
    }


def _timed(connection: psycopg.Connection[tuple[object, ...]], call: Call) -> float:
    started = time.perf_counter()
    call(connection)
    return 1000 * (time.perf_counter() - started)


def _rate(dsn: str, call: Call, lab: Lab) -> float:
    """All clients together."""
    each = max(1, lab.sizes.calls // lab.sizes.clients)
    start = threading.Barrier(lab.sizes.clients + 1)

    def client() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            call(connection)
            start.wait()
            for _ in range(each):
                call(connection)

    with ThreadPoolExecutor(lab.sizes.clients) as pool:
        running = [pool.submit(client) for _ in range(lab.sizes.clients)]
        start.wait()
        started = time.perf_counter()
        for one in running:
            one.result()
        return each * lab.sizes.clients / (time.perf_counter() - started)


LINES: tuple[Line[Lab], ...] = (
    Line(
        "resolve",
        "resolve of 3 identities, a million contacts",
        (
            Check("resolve/known/p50", "known_p50_ms", 3.0, at_most=True),
            Check("resolve/new/p50", "new_p50_ms", 3.0, at_most=True),
            Check("resolve/known/rate", "known_per_second", 2000.0),
            Check("resolve/new/rate", "new_per_second", None),
        ),
        lambda lab: [Contender("livewell", lambda: resolve(lab))],
    ),
    Line(
        "crowd",
        "a thousand calls about one contact, and others beside them",
        (
            Check("crowd/rate", "crowd_per_second", None),
            Check("crowd/alone", "alone_p50_ms", None),
            Check("crowd/beside", "beside_p50_ms", 3.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: crowd(lab))],
    ),
)
