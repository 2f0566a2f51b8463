"""What this process has done since it began, counted: requests, pushes, jobs, due checks.

Here are only numbers; operations/metrics.py decides how they are shown.

A process has one set of them, as it has one clock: all code counts here, and a request for metrics
reads all of it. Counts never go down, so a restart loses only what this process had counted.
Figures of the whole system come from the database (livewell.system_state).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from livewell.telemetry.last_hour import LastHour

Labels = tuple[str, ...]

_LABELS_MAX = 500  # combinations of one measure; what comes later is counted as "other"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Counter:
    """How often, by labels."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self.values: dict[Labels, float] = {}

    def add(self, *labels: str, n: float = 1) -> None:
        """Count n more."""
        place = _place(self.values, labels)
        self.values[place] = self.values.get(place, 0) + n


class Gauge:
    """How many there are now, by labels.

    The owner of the things gives a function that counts them; it is called when somebody looks.
    """

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self.values: dict[Labels, Callable[[], float]] = {}

    def follow(self, count: Callable[[], float], *labels: str) -> None:
        """Ask this from now on."""
        self.values[_place(self.values, labels)] = count

    def forget(self, count: Callable[[], float], *labels: str) -> None:
        """Do not ask it any more, unless somebody else is asked by now; what it counts can go."""
        if self.values.get(labels) is count:
            del self.values[labels]


class Histogram:
    """How long, by labels: how many took at most so many seconds, and how long all of them took."""

    bounds = _SECONDS

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self.values: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        """One took so long."""
        self.observe_all((seconds,), *labels)

    def observe_all(self, lengths: Sequence[float], *labels: str) -> None:
        """Each took so long; many at once, for a worker ends fifty thousand jobs a second."""
        place = _place(self.values, labels)
        found = self.values.get(place)
        if found is None:
            found = self.values[place] = ([0] * (len(self.bounds) + 1), [0.0])
        counts, total = found
        bounds = self.bounds
        for seconds in lengths:
            counts[bisect_left(bounds, seconds)] += 1
        total[0] += sum(lengths)

    def buckets(self, labels: Labels) -> Iterator[tuple[str, float]]:
        """(upper bound, how many so far), growing, as Prometheus wants them."""
        n = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.values[labels][0], strict=True):
            n += count
            yield bound, n


def _place(values: Mapping[Labels, object], labels: Labels) -> Labels:
    """These labels; others in their place when there are too many already."""
    return labels if labels in values or len(values) < _LABELS_MAX else ("other",) * len(labels)


BEGAN: Final = time.monotonic()
REQUESTS: Final = Counter("livewell_process_requests", "HTTP requests by method and status.", "method", "status")
REQUEST_SECONDS: Final = Histogram(
    "livewell_process_request_seconds", "How long answers took; without streams.", "method"
)
PUSHES: Final = Counter("livewell_process_pushes", "Events sent to streams.")
JOB_SECONDS: Final = Histogram(
    "livewell_process_job_seconds", "How long jobs took, by how they ended.", "queue", "outcome"
)
REFRESHES: Final = Counter(
    "livewell_process_refreshes", "Refreshes by type and what became of them.", "type", "outcome"
)
EXPORTS: Final = Counter("livewell_process_exports", "Attempts at exports by what became of them.", "outcome")
DUE_SECONDS: Final = Histogram("livewell_process_due_check_seconds", "How long due checks took.", "upstream")
STARTED: Final = Counter(
    "livewell_process_startup_seconds", "From the start of the process until it could serve or work."
)

LENGTHLESS: Final = Counter(
    "livewell_process_answers_without_length",
    "Answers of upstreams that did not state their Content-Length: how large they are is known only after they "
    "were paid for.",
    "upstream",
)
REFUSED: Final = Counter("livewell_process_refused", "What the server refused at its gate, by kind.", "kind")
CAPPED: Final = Counter(
    "livewell_process_capped", "Keys that a stream could not follow: its client's share, or all places, are used up."
)
HELD: Final = Gauge("livewell_process_held", "How many of something bounded this server holds now.", "what")
HELD_MAX: Final = Gauge("livewell_process_held_max", "How many of it this server may hold.", "what")
READINGS_PUSHED: Final = LastHour()  # for the first page of the dashboard, which says that it is of this server
COUNTERS: Final = (REQUESTS, PUSHES, REFRESHES, EXPORTS, LENGTHLESS, REFUSED, CAPPED)
GAUGES: Final = (HELD, HELD_MAX)
HISTOGRAMS: Final = (REQUEST_SECONDS, JOB_SECONDS, DUE_SECONDS)


@contextmanager
def held(what: str, count: Callable[[], float], most: float) -> Iterator[None]:
    """While the block lasts: a bounded thing of this server, how many are held, of how many."""

    def bound() -> float:
        return most

    HELD.follow(count, what)
    HELD_MAX.follow(bound, what)
    try:
        yield
    finally:
        HELD.forget(count, what)
        HELD_MAX.forget(bound, what)


def started() -> None:
    """It can serve, or work: remember how long that took, the first time."""
    if not STARTED.values:
        STARTED.add(n=time.monotonic() - BEGAN)
