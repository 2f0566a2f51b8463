"""What a relay has in flight: lanes end with what was not delivered, and old words mean nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from livewell.outbox.event import Event
from livewell.outbox.relay.in_flight import InFlight
from livewell.outbox.relay.sending import send_batch
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict

FAILED = Outcome(Verdict.FAILED, "no")


def event(number: int, lane: int = 1, payload: str = "{}") -> Event:
    return Event(number, f"x-{number}", "/x", "t", "k", "", datetime.now(UTC), payload, None, lane)


class Script:
    """A sink that does to each batch what it is told, and remembers what it was sent."""

    dedupes = True

    def __init__(self, act: Callable[[Sequence[Event], Settle], None], *, largest: int | None = None) -> None:
        self.event_bytes_max = largest
        self.act = act
        self.sent: list[list[int]] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        self.sent.append([one.number for one in events])
        await asyncio.sleep(0)
        self.act(events, settle)


async def sent(sink: Script, *events: Event) -> tuple[dict[int, Verdict], list[int]]:
    """What became of a batch: verdicts, and what goes again without blame."""
    flight = InFlight()
    flight.add(events)
    await send_batch(sink, events, flight, deadline_seconds=0.05, settled=lambda _: None)
    settled, sending = flight.take()
    assert sending == []
    told = {one.number: said.verdict for one, said in settled.pairs}
    return told, [one.number for one in events if one.number not in told]


def test_behind_one_that_was_not_delivered_the_lane_is_released() -> None:
    """Seen failing: it was told to be on its way, which ended pauses and unparked keys."""
    flight = InFlight()
    first, second, other = event(1), event(2), event(3, lane=2)
    flight.add([first, second, other])
    flight.settle(first, FAILED)

    assert flight.take()[1] == [3]
    flight.settle(second, DELIVERED)
    assert not flight.has_news


def test_words_about_an_event_that_was_claimed_again_are_not_believed_from_its_first_batch() -> None:
    """The end of the old batch releases nothing that the new one is sending."""
    flight = InFlight()
    old, new = event(1), event(1)
    flight.add([old])
    flight.release([old])
    flight.add([new])
    flight.release([old])
    flight.settle(old, DELIVERED)

    assert (flight.take()[1], flight.holds(new)) == ([1], True)


async def test_what_breaks_a_sink_is_found_and_nothing_overtakes_in_its_lane() -> None:
    """Seen failing: the line that logs such an event raised, so it was tried for ever without an attempt."""

    def act(events: Sequence[Event], settle: Settle) -> None:
        for one in events:
            if one.number == 1:
                settle(one, FAILED)
            elif one.number == 3:
                raise RuntimeError("it broke")
            elif len(events) == 1:
                settle(one, DELIVERED)

    sink = Script(act)
    told, again = await sent(sink, event(1), event(2), event(3, lane=2), event(4, lane=2), event(5, lane=3))

    assert told == {1: Verdict.FAILED, 3: Verdict.FAILED, 5: Verdict.DELIVERED}
    assert again == [2, 4]
    assert [2] not in sink.sent


async def test_past_the_deadline_only_the_first_of_a_lane_is_unknown() -> None:
    """The rest of the lane was not sent, and is not blamed."""

    class Hangs(Script):
        async def send(self, *_: object) -> None:
            await asyncio.Event().wait()

    told, again = await sent(Hangs(lambda *_: None), event(1), event(2), event(3, lane=2))

    assert told == {1: Verdict.UNKNOWN, 3: Verdict.UNKNOWN}
    assert again == [2]


async def test_a_large_event_is_refused_and_its_lane_waits() -> None:
    def act(events: Sequence[Event], settle: Settle) -> None:
        for one in events:
            settle(one, DELIVERED)

    sink = Script(act, largest=20)
    told, again = await sent(sink, event(1, payload='"' + "x" * 50 + '"'), event(2), event(3, lane=2))

    assert told == {1: Verdict.REFUSED, 3: Verdict.DELIVERED}
    assert again == [2]


@pytest.mark.parametrize("settled", [0, 1])
async def test_a_sink_that_goes_away_blames_nobody(settled: int) -> None:
    def act(events: Sequence[Event], settle: Settle) -> None:
        for one in events[:settled]:
            settle(one, DELIVERED)
        raise SinkAway("down")

    told, again = await sent(Script(act), event(1), event(2))

    assert (len(told), len(again)) == (settled, 2 - settled)
