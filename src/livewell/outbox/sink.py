"""What a sink is: a place that events go to, and how it says what became of each.

    opened ──send(batch)──▶ each event settled: delivered | refused | failed | unknown
       │                        └── SinkAway: nobody is to blame but the sink; what is not settled waits
       └──close

A sink is one small class in one file of sinks/. It keeps the order inside a lane, says exactly what
it knows of each event, and repeats nothing: the relay decides when an event goes again. Every sink
passes the same conformance suite (livewell.testing.sinks).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from livewell.errors import LivewellError
from livewell.outbox.event import Event


class Verdict(StrEnum):
    """What became of one event at its sink."""

    DELIVERED = "delivered"  # the sink has it, and said so
    REFUSED = "refused"  # the sink will never take it: too large, malformed
    FAILED = "failed"  # not taken this time
    UNKNOWN = "unknown"  # it may have been taken: sent, and no answer came


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, why, and when to try again if the sink asked for a time."""

    verdict: Verdict
    detail: str = ""
    again_seconds: float | None = None


DELIVERED = Outcome(Verdict.DELIVERED)
Settle = Callable[[Event, Outcome], None]


class SinkAway(LivewellError):
    """The sink as a whole takes nothing now: it is down, refuses our login, or is misconfigured.

    No event is blamed. The relay rests, with growing pauses, and tries again.
    """


class Sink(Protocol):
    """One receiver of events.

    dedupes          True if the receiver drops a second event with the same id
    event_bytes_max  a larger payload is refused without being sent; None: the receiver says
    """

    dedupes: bool
    event_bytes_max: int | None

    async def open(self) -> None:
        """Connect. Raises SinkAway; is called again after SinkAway, also from send()."""

    async def close(self) -> None:
        """Give connections back; never raises because the receiver is gone."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Send a batch, and settle each event as soon as its fate is known.

        Events come in order. One of a lane goes only when the one before it is delivered; after
        another verdict the rest of the lane is left unsettled. What was sent and not answered when
        the connection breaks is settled UNKNOWN, then SinkAway is raised. The relay cancels a call
        that is past its deadline, and takes what is not settled then for unknown. Calls overlap:
        another batch, of other lanes, may be sent while one is under way.
        """


def lanes(events: Iterable[Event]) -> list[list[Event]]:
    """The events of a batch by lane, each in its order."""
    found: dict[int, list[Event]] = {}
    for event in events:
        found.setdefault(event.lane, []).append(event)
    return list(found.values())


async def send_by_lane(
    events: Sequence[Event], settle: Settle, send_one: Callable[[Event], Awaitable[Outcome]], *, at_once: int
) -> None:
    """Send lanes beside each other, and the events of a lane one after the other.

    A lane ends with the first event that was not delivered. SinkAway from one event ends the call
    when all that are under way have ended.
    """
    waiting = iter(lanes(events))
    away: list[SinkAway] = []

    async def slot() -> None:
        for lane in waiting:
            for event in lane:
                if away:
                    return
                try:
                    outcome = await send_one(event)
                except SinkAway as error:
                    away.append(error)
                    return
                settle(event, outcome)
                if outcome.verdict is not Verdict.DELIVERED:
                    break

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(events))):
            group.create_task(slot())
    if away:
        raise away[0]
