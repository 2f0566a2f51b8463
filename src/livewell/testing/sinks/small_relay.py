"""A relay in forty lines: sends events as the real one does, and writes down what the sink said."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from livewell.outbox.event import Event
from livewell.outbox.sink import Outcome, Sink, SinkAway, Verdict, lanes
from livewell.testing.sinks.judge import Broken, demand

SEND_SECONDS_MAX = 30.0
_TURNS_MAX = 200
_PAUSE_SECONDS = 0.05


@dataclass(slots=True)
class Told:
    """What a sink said in one call."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    away: SinkAway | None = None
    ended: bool = False

    def settle(self, event: Event, outcome: Outcome) -> None:
        """Hear one verdict; a second one for an event, or one after the call, breaks a rule."""
        demand(not self.ended, f"event {event.id} was settled after send() had ended")
        demand(event.id not in self.outcomes, f"event {event.id} was settled twice in one call")
        self.outcomes[event.id] = outcome

    def ids(self, *verdicts: Verdict) -> list[str]:
        """Events with one of these verdicts."""
        return [id_ for id_, outcome in self.outcomes.items() if outcome.verdict in verdicts]


def made(count: int, *, lanes_: int = 5, payload: str | None = None) -> list[Event]:
    """Events in their order, in so many lanes; the first key needs encoding wherever one can."""
    stamp = datetime(2026, 11, 19, 4, 27, 19, 250_000, tzinfo=UTC)
    keys = [f'order {lane} ü%"x' if lane == 0 else f"order-{lane}" for lane in range(lanes_)]
    return [
        Event(
            number=number + 1,
            id=str(uuid.uuid4()),
            source="/shop",
            topic="orders.created",
            key=keys[number % lanes_],
            tenant="acme",
            created_at=stamp,
            payload=payload or f'{{"n": {number}, "text": "é \\u0000 \\"q\\"", "exact": 1.10}}',
            trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            lane=number % lanes_,
        )
        for number in range(count)
    ]


async def send(sink: Sink, events: Sequence[Event]) -> Told:
    """One call, as the relay makes it."""
    told = Told()
    try:
        async with asyncio.timeout(SEND_SECONDS_MAX):
            await sink.send(events, told.settle)
    except SinkAway as away:
        told.away = away
    except TimeoutError:
        raise Broken(f"send() of {len(events)} events did not end within {SEND_SECONDS_MAX:g} s") from None
    told.ended = True
    _judge_lanes(events, told)
    return told


async def send_until_delivered(sink: Sink, events: Sequence[Event]) -> int:
    """Send again what is not delivered until all is; answers how many were unknown on the way."""
    unknown, left = 0, list(events)
    for _ in range(_TURNS_MAX):
        told = await send(sink, left)
        unknown += len(told.ids(Verdict.UNKNOWN))
        done = set(told.ids(Verdict.DELIVERED))
        left = [event for event in left if event.id not in done]
        if not left:
            return unknown
        await asyncio.sleep(_PAUSE_SECONDS)  # as the relay rests; a receiver that comes back says nothing
    raise Broken(f"{len(left)} of {len(events)} events were never delivered; the sink said last: {told}")


def _judge_lanes(events: Sequence[Event], told: Told) -> None:
    """Nothing behind an event that was not delivered."""
    for lane in lanes(events):
        stopped: str | None = None
        for event in lane:
            outcome = told.outcomes.get(event.id)
            demand(
                outcome is None or stopped is None,
                f"event {event.id} was settled, and {stopped}, which is before it in its lane, was not delivered",
            )
            if outcome is None or outcome.verdict is not Verdict.DELIVERED:
                stopped = event.id
    missing = [event.id for event in events if event.id not in told.outcomes]
    stops = [id_ for id_ in told.outcomes if told.outcomes[id_].verdict is not Verdict.DELIVERED]
    demand(not missing or told.away or stops, f"{len(missing)} events were not settled, and nothing stood in their way")
