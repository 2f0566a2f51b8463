"""One batch at the sink, and what its errors mean.

checked for size ──▶ sent ──▶ every event settled
                       ├──SinkAway: what is not settled is released, nobody is to blame
                       ├──past its deadline: what is not settled is unknown
                       └──any other error: sent again one by one, so that the event that the
                          sink breaks on is found, and no neighbour is blamed for it
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from livewell.outbox.event import Event
from livewell.outbox.relay.in_flight import InFlight, unknown
from livewell.outbox.sink import Outcome, Sink, SinkAway, Verdict, lanes
from livewell.telemetry.redact import redact

log = structlog.get_logger("livewell.outbox")


async def send_batch(
    sink: Sink,
    events: Sequence[Event],
    flight: InFlight,
    *,
    deadline_seconds: float,
    settled: Callable[[Outcome], None],
) -> str | None:
    """Send a batch and settle it; answers why the sink takes nothing now, or None."""

    def settle(event: Event, outcome: Outcome) -> None:
        flight.settle(event, outcome)
        settled(outcome)

    fitting = _refuse_large(sink, events, settle)
    try:
        async with asyncio.timeout(deadline_seconds):
            return await _send(sink, fitting, flight, settle)
    except TimeoutError:
        for event, outcome in unknown(flight.unsettled(events), f"no answer within {deadline_seconds:g} s"):
            settle(event, outcome)
        return None
    finally:
        flight.release(events)  # what nobody spoke of goes again


async def _send(
    sink: Sink, events: Sequence[Event], flight: InFlight, settle: Callable[[Event, Outcome], None]
) -> str | None:
    try:
        if events:
            await sink.send(events, settle)
    except SinkAway as error:
        return redact(str(error))
    except Exception as error:
        if len(events) == 1:
            log.warning("a sink broke on an event", id=events[0].id, error=type(error).__name__, exc_info=True)
            settle(events[0], Outcome(Verdict.FAILED, redact(f"{type(error).__name__}: {error}")))
            return None
        return await _one_by_one(sink, flight.unsettled(events), flight, settle)
    return None


async def _one_by_one(
    sink: Sink, events: Sequence[Event], flight: InFlight, settle: Callable[[Event, Outcome], None]
) -> str | None:
    """Each alone; of a lane nothing goes behind an event that was not delivered."""
    for lane in lanes(events):
        for event in lane:
            if not flight.holds(event):
                break  # one before it was not delivered
            away = await _send(sink, [event], flight, settle)
            if away is not None:
                return away
            if flight.holds(event):
                break  # nobody spoke of it
    return None


def _refuse_large(sink: Sink, events: Sequence[Event], settle: Callable[[Event, Outcome], None]) -> Sequence[Event]:
    """Refuse what the sink can never take; the rest of such a lane waits for the next batch."""
    most = sink.event_bytes_max
    if most is None or all(len(event.payload) * 4 <= most for event in events):
        return events
    large = {event.number: size for event in events if (size := len(event.payload.encode())) > most}
    fitting: list[Event] = []
    blocked: set[int] = set()
    for event in events:
        if event.lane in blocked:
            continue
        if event.number in large:
            blocked.add(event.lane)
            size = large[event.number]
            settle(event, Outcome(Verdict.REFUSED, f"its payload has {size:,} bytes; this sink takes {most:,}"))
        else:
            fitting.append(event)
    return fitting
