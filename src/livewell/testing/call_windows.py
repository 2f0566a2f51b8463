"""Count calls from outside: was a limit kept over every window, and how much of it was used?

A window is half-open, [start, start + length): two calls exactly one length apart do not share one.
Some fullest window starts at a call (move any window to the right up to its first call: it loses
none), so looking at those is looking at all.

A call is in flight over [at_ns, ended_ns), for at least one nanosecond; one that has not ended is
still in flight. Both instants lie inside the time that the caller waited (a call that its client
gave up ends when the server notices), so an overlap of answered calls that is found here did
happen.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from livewell.testing.upstream.call import Call

__all__ = ["Overlaps", "Window", "busiest_window", "calls_between", "overlaps", "use"]

NS_PER_SECOND = 1_000_000_000


class Window(NamedTuple):
    """How many calls the fullest window holds, and where the first such window starts.

    The start is 0 when there is no call.
    """

    calls: int
    start_ns: int


@dataclass(frozen=True, slots=True)
class Overlaps:
    """The most calls that were in flight at one instant: of all, and of each key."""

    total: int
    per_key: dict[str, int]


def busiest_window(calls: Iterable[Call], window_seconds: float) -> Window:
    """Find the fullest of all windows of this length."""
    length_ns = _length_ns(window_seconds)
    instants = sorted(call.at_ns for call in calls)
    best = Window(0, 0)
    end = 0
    for index, start_ns in enumerate(instants):
        while end < len(instants) and instants[end] - start_ns < length_ns:
            end += 1
        if end - index > best.calls:
            best = Window(end - index, start_ns)
    return best


def calls_between(calls: Iterable[Call], start_ns: int, end_ns: int) -> list[Call]:
    """Give the calls received in [start, end): such as those before a Retry-After was over."""
    return [call for call in calls if start_ns <= call.at_ns < end_ns]


def overlaps(calls: Iterable[Call]) -> Overlaps:
    """Find the most calls in flight at once. A batch is in flight for each of its keys, once."""
    every = list(calls)
    per_key: dict[str, list[Call]] = defaultdict(list)
    for call in every:
        for key in set(call.keys):
            per_key[key].append(call)
    return Overlaps(_most(every), {key: _most(some) for key, some in per_key.items()})


def use(calls: Iterable[Call], limit: int, window_seconds: float) -> float:
    """Give the share of the limit that was used between the first and the last call: 1.0 is a call
    every window/limit.

    A figure about waste, not a judge: a legal burst at either end takes it above 1 on a short log
    (busiest_window judges). Fewer than two calls, or all at one instant, use 0: there is no time
    between them.
    """
    length_ns = _length_ns(window_seconds)
    instants = [call.at_ns for call in calls]
    span_ns = max(instants) - min(instants) if instants else 0
    return (len(instants) - 1) * length_ns / (limit * span_ns) if span_ns else 0.0


def _most(calls: Iterable[Call]) -> int:
    # At one instant ends come before beginnings (-1 sorts before 1): the intervals are half-open.
    changes: list[tuple[int, int]] = []
    for call in calls:
        changes.append((call.at_ns, 1))
        if call.ended_ns is not None:
            changes.append((max(call.ended_ns, call.at_ns + 1), -1))
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _length_ns(window_seconds: float) -> int:
    length_ns = round(window_seconds * NS_PER_SECOND)
    if length_ns <= 0:
        msg = f"a window of {window_seconds} s: it must be longer than 0"
        raise ValueError(msg)
    return length_ns
