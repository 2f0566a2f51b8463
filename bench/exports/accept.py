"""How soon a request is answered: fifty a second from many users, while the worker renders what comes.

The clients keep to the clock: a request that comes late because the one before it was slow is
counted from when it should have been sent.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from bench.exports.documents import ONE_PAGE
from bench.exports.lab import Lab, User
from bench.line import Check, Contender, Line
from bench.measure import Figures

_USERS = 25


def _measure(lab: Lab, *, works: bool) -> Figures:
    with lab.stage(works=works) as stage:
        users = [stage.user(ONE_PAGE) for _ in range(_USERS)]
        each = max(2, lab.sizes.accept_seconds * lab.sizes.accept_per_second // _USERS)
        begin = time.monotonic() + 0.5
        gap = _USERS / lab.sizes.accept_per_second

        def client(place: int, user: User) -> list[float]:
            took = []
            for n in range(each):
                due = begin + n * gap + place * gap / _USERS
                time.sleep(max(0.0, due - time.monotonic()))
                user.ask()
                took.append(1000 * (time.monotonic() - due))
            return took

        with ThreadPoolExecutor(_USERS) as pool:
            running = [pool.submit(client, place, user) for place, user in enumerate(users)]
            took = sorted(ms for one in running for ms in one.result())
        seconds = time.monotonic() - begin
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p99_ms": cuts[98], "latest_ms": took[-1], "requests_per_second": len(took) / seconds}


def _both(lab: Lab) -> Figures:
    """With the worker rendering beside it, and without."""
    alone = _measure(lab, works=False)
    return _measure(lab, works=True) | {f"alone_{name}": value for name, value in alone.items()}


LINES: tuple[Line[Lab], ...] = (
    Line(
        "accept",
        "POST /v1/exports, 50 a second, while a worker renders",
        (
            Check("accept/p99", "p99_ms", 50.0, at_most=True),
            Check("accept/p50", "p50_ms", None),
            Check("accept/alone/p99", "alone_p99_ms", 50.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _both(lab))],
    ),
)
