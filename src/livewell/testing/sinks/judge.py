"""Compare what a sink said with what its receiver has."""

from __future__ import annotations

from collections.abc import Sequence

from livewell.errors import LivewellError
from livewell.outbox.event import Event
from livewell.outbox.sink import lanes
from livewell.testing.sinks.lab import Received


class Broken(LivewellError, AssertionError):
    """The sink broke a rule; the text says which, and with which event."""


def demand(holds: object, rule: str) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(rule)


def judge(events: Sequence[Event], delivered: Sequence[str], received: Sequence[Received], *, repeats_max: int) -> None:
    """Every rule about events that were sent, some of which were said to be delivered.

    delivered     ids that the sink settled as delivered
    repeats_max   how many messages may be there twice, in all
    """
    by_id = {event.id: event for event in events}
    ours = [one for one in received if one.id in by_id]
    there = {one.id for one in ours}
    lost = [id_ for id_ in delivered if id_ not in there]
    demand(not lost, f"{len(lost)} events were settled as delivered, and the receiver has none of them: {lost[:3]}")
    for one in ours:
        event = by_id[one.id]
        demand(one.payload == event.payload, f"event {one.id}: its payload is not as it was emitted")
        demand(one.key == event.key, f"event {one.id}: key {one.key!r} instead of {event.key!r}")
    _judge_order(events, ours)
    repeats = len(ours) - len(there)
    demand(repeats <= repeats_max, f"{repeats} messages are there twice, {repeats_max} may be")


def _judge_order(events: Sequence[Event], received: Sequence[Received]) -> None:
    """First comings count: a repeat of an old event behind a newer one is a repeat, not a reorder."""
    place: dict[str, int] = {}
    for number, one in enumerate(received):
        place.setdefault(one.id, number)
    for lane in lanes(events):
        gap: str | None = None
        last = -1
        for event in lane:
            if event.id not in place:
                gap = event.id
                continue
            demand(gap is None, f"event {event.id} came, and {gap}, which is before it in its lane, did not")
            demand(place[event.id] > last, f"event {event.id} came before the one that is before it in its lane")
            last = place[event.id]
