"""The checks. Each takes a lab and leaves it healed; its name says what a sink must do.

    what a lab offers   which checks run
    (always)            delivery, order, repeats, size, cancellation, closing
    "network"           cut, lost answers, slow, frozen, down and back
    "login"             a refused login

A check whose fault never struck fails: ProxiedLab's proxy counts what it broke.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from livewell.outbox.sink import Sink, SinkAway, Verdict
from livewell.testing.sinks.judge import demand, judge
from livewell.testing.sinks.lab import SinkLab
from livewell.testing.sinks.small_relay import Told, made, send, send_until_delivered

Check = Callable[[Any], Awaitable[None]]

CLOSE_SECONDS_MAX = 8.0
_CANCEL_TURNS = 20


async def delivers_a_batch_in_the_order_of_each_lane(lab: SinkLab) -> None:
    """All is there, letter by letter, and said to be."""
    sink, events = lab.sink(), made(100, lanes_=7)
    try:
        told = await send(sink, events)
        demand(len(told.ids(Verdict.DELIVERED)) == 100, f"not all of 100 events were delivered: {told}")
        received = await lab.received()
        judge(events, told.ids(Verdict.DELIVERED), received, repeats_max=0)
        demand(len(received) == 100, f"the receiver has {len(received)} messages of 100")
    finally:
        await sink.close()


async def delivers_a_long_lane_in_order(lab: SinkLab) -> None:
    """One key, one after the other."""
    sink, events = lab.sink(), made(60, lanes_=1)
    try:
        told = await send(sink, events)
        judge(events, told.ids(Verdict.DELIVERED), await lab.received(), repeats_max=0)
        demand(len(told.ids(Verdict.DELIVERED)) == 60, f"not all of 60 events were delivered: {told}")
    finally:
        await sink.close()


async def takes_a_repeat_as_it_says(lab: SinkLab) -> None:
    """The same id again: dropped where the sink says that it dedupes, and the same id where not."""
    sink, events = lab.sink(), made(10)
    try:
        for _ in range(2):
            told = await send(sink, events)
            demand(len(told.ids(Verdict.DELIVERED)) == 10, f"a repeat was not taken: {told}")
        received = await lab.received()
        judge(events, told.ids(Verdict.DELIVERED), received, repeats_max=0 if sink.dedupes else 10)
    finally:
        await sink.close()


async def refuses_what_is_too_large_and_names_both_sizes(lab: SinkLab) -> None:
    """Its lane ends there, all others go on, and nothing of it reaches the receiver."""
    sink, events = lab.sink(), made(20, lanes_=4)
    size = lab.event_bytes_max + 1
    large = made(1, payload='"' + "x" * (size - 2) + '"')[0]
    large = replace(large, number=6, lane=events[5].lane, key=events[5].key)
    events[5] = large
    try:
        told = await send(sink, events)
        outcome = told.outcomes.get(large.id)
        demand(outcome is not None and outcome.verdict is Verdict.REFUSED, f"too large, and not refused: {outcome}")
        for number in (size, lab.event_bytes_max):
            demand(
                outcome is not None and str(number) in outcome.detail, f"the detail does not name {number}: {outcome}"
            )
        behind = [event.id for event in events[6:] if event.lane == events[5].lane]
        demand(not set(behind) & set(told.outcomes), "an event behind a refused one of its lane was sent")
        demand(len(told.ids(Verdict.DELIVERED)) == 16, f"the other lanes did not go on: {told}")
        received = await lab.received()
        demand(large.id not in {one.id for one in received}, "what was refused was sent")
        judge(
            [event for event in events if event.lane != large.lane],
            told.ids(Verdict.DELIVERED)[:0],
            received,
            repeats_max=0,
        )
    finally:
        await sink.close()


async def takes_the_largest_that_it_allows(lab: SinkLab) -> None:
    """The bound is a promise in both directions."""
    sink, events = lab.sink(), made(2, payload='"' + "x" * (lab.event_bytes_max - 2) + '"')
    try:
        told = await send(sink, events)
        judge(events, told.ids(Verdict.DELIVERED), await lab.received(), repeats_max=0)
        demand(len(told.ids(Verdict.DELIVERED)) == 2, f"an event of exactly the allowed size was not delivered: {told}")
    finally:
        await sink.close()


async def settles_nothing_after_a_cancelled_call(lab: SinkLab) -> None:
    """Cancelled at any turn of the loop; the next call sends all of it again, in order."""
    sink, events = lab.sink(), made(30, lanes_=3)
    delivered: set[str] = set()
    try:
        for turns in range(_CANCEL_TURNS):
            told = Told()
            left = [event for event in events if event.id not in delivered]
            task = asyncio.create_task(sink.send(left, told.settle))
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            demand(task.cancelled() or task.exception() is None, f"a cancelled call raised {_error(task)!r}")
            told.ended = True
            delivered |= set(told.ids(Verdict.DELIVERED))
        await send_until_delivered(sink, [event for event in events if event.id not in delivered])
        ids = [event.id for event in events]
        judge(events, ids, await lab.received(), repeats_max=0 if sink.dedupes else 30 * _CANCEL_TURNS)
    finally:
        await sink.close()


async def takes_batches_that_overlap(lab: SinkLab) -> None:
    """The relay sends the next batch, of other lanes, while one is under way; also the very first."""
    sink, events = lab.sink(), made(80, lanes_=8)
    try:
        parts = [[event for event in events if event.lane % 4 == part] for part in range(4)]
        told = await asyncio.gather(*(send(sink, part) for part in parts))
        delivered = [id_ for one in told for id_ in one.ids(Verdict.DELIVERED)]
        demand(len(delivered) == 80, f"of 80 events in 4 calls {len(delivered)} were delivered: {told}")
        judge(events, delivered, await lab.received(), repeats_max=0)
    finally:
        await sink.close()


async def closes_before_it_was_opened_and_twice(lab: SinkLab) -> None:
    """close() is a promise, not a question; a closed sink opens again."""
    sink, events = lab.sink(), made(2)
    await _close(sink)
    await sink.open()
    await _close(sink)
    await _close(sink)
    told = await send(sink, events)
    demand(len(told.ids(Verdict.DELIVERED)) == 2, f"a sink that was closed does not open again: {told}")
    await _close(sink)


async def says_unknown_when_the_answer_is_lost_after_it_was_stored(lab: SinkLab) -> None:
    """The receiver has it, or may have it; then it is sent again under the same id."""
    sink, events = lab.sink(), made(5)
    try:
        await send(sink, made(1))
        lab.lose_answers()
        told = await send(sink, events)
        honest = told.ids(Verdict.UNKNOWN, Verdict.DELIVERED)
        stored = {one.id for one in await lab.received()} & {event.id for event in events}
        unsaid = stored - set(honest)
        demand(not unsaid, f"the receiver has {len(unsaid)} events that were neither unknown nor delivered: {told}")
        judge(events, told.ids(Verdict.DELIVERED), await lab.received(), repeats_max=lab.mock_repeats_max)
        demand(stored, "the fault never struck: nothing was stored while answers were lost")
        lab.heal()
        left = [event for event in events if event.id not in told.ids(Verdict.DELIVERED)]
        await send_until_delivered(sink, left)
        ids = [event.id for event in events]
        repeats = lab.mock_repeats_max + (0 if sink.dedupes else len(stored))
        judge(events, ids, await lab.received(), repeats_max=repeats)
    finally:
        lab.heal()
        await sink.close()


async def loses_nothing_when_it_is_cut_in_the_middle(lab: SinkLab) -> None:
    """Cut at many places of a batch: no delivery is made up, none is lost, and lanes keep their order."""
    before = lab.struck()
    for answer_bytes in (1, 90, 300, 700, 1_500):
        sink, events = lab.sink(), made(60, lanes_=6)
        try:
            await send(sink, made(1))
            lab.cut_after(answer_bytes)
            unknown = await send_until_delivered(sink, events)
            lab.heal()
            repeats = lab.mock_repeats_max + (0 if sink.dedupes else unknown)
            judge(events, [event.id for event in events], await lab.received(), repeats_max=repeats)
        finally:
            lab.heal()
            await sink.close()
    demand(lab.struck() > before, "the fault never struck: no connection was cut")


async def keeps_overlapping_batches_apart_when_it_is_cut(lab: SinkLab) -> None:
    """Four calls at once, cut in the middle, one of them cancelled: each says only what it knows."""
    sink, events, before = lab.sink(), made(80, lanes_=8), lab.struck()
    try:
        await send(sink, made(1))
        lab.cut_after(lab.middle_bytes)
        parts = [[event for event in events if event.lane % 4 == part] for part in range(4)]
        cancelled = asyncio.create_task(sink.send(parts[3], Told().settle))
        calls = [asyncio.create_task(send_until_delivered(sink, part)) for part in parts[:3]]
        await asyncio.sleep(0.02)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        unknown = sum(await asyncio.gather(*calls)) + await send_until_delivered(sink, parts[3]) + len(parts[3])
        repeats = lab.mock_repeats_max + (0 if sink.dedupes else unknown)
        judge(events, [event.id for event in events], await lab.received(), repeats_max=repeats)
        demand(lab.struck() > before, "the fault never struck: no connection was cut")
    finally:
        lab.heal()
        await sink.close()


async def says_of_part_of_a_batch_only_what_it_knows(lab: SinkLab) -> None:
    """After a cut each event of one call is delivered and there, or unknown, or was not begun."""
    sink, events, before = lab.sink(), made(60, lanes_=6), lab.struck()
    try:
        await send(sink, made(1))
        lab.cut_after(lab.middle_bytes)
        told = await send(sink, events)
        received = await lab.received()
        judge(events, told.ids(Verdict.DELIVERED), received, repeats_max=lab.mock_repeats_max)
        unsaid = {one.id for one in received} & {event.id for event in events} - set(told.outcomes)
        demand(not unsaid, f"{len(unsaid)} events are at the receiver, and the sink said nothing of them")
        wrong = told.ids(Verdict.REFUSED)
        demand(not wrong, f"a cut connection is no refusal: {told}")
        demand(lab.struck() > before, "the fault never struck: no connection was cut")
    finally:
        lab.heal()
        await sink.close()


async def is_patient_with_a_slow_receiver(lab: SinkLab) -> None:
    """Ten times slower, and still in order and only once."""
    sink, events = lab.sink(), made(30, lanes_=10)
    try:
        await send(sink, made(1))
        lab.slow(0.03)
        told = await send(sink, events)
        lab.heal()
        demand(len(told.ids(Verdict.DELIVERED)) == 30, f"slow, and not all were delivered: {told}")
        judge(events, told.ids(Verdict.DELIVERED), await lab.received(), repeats_max=0)
    finally:
        lab.heal()
        await sink.close()


async def blames_no_event_while_the_receiver_is_down(lab: SinkLab) -> None:
    """SinkAway, and no verdict; when it is back, all is delivered once by the same sink."""
    sink, events = lab.sink(), made(20)
    try:
        await send(sink, made(1))
        lab.stop()
        await send(sink, made(1))  # may still be under way on the old connection
        for _ in range(3):
            told = await send(sink, events)
            demand(told.away is not None, f"down, and the sink did not say so: {told}")
            demand(not told.outcomes, f"down, and events got a verdict: {told}")
            demand(lab.secret == "" or lab.secret not in str(told.away), "the error shows a part of the address")
        lab.heal()
        await send_until_delivered(sink, events)
        judge(events, [event.id for event in events], await lab.received(), repeats_max=0)
    finally:
        lab.heal()
        await sink.close()


async def ends_by_itself_when_nothing_passes_any_more(lab: SinkLab) -> None:
    """Half open: what was sent is unknown, the rest was not begun; afterwards all goes on in order."""
    sink, events = lab.sink(), made(20, lanes_=4)
    try:
        await send(sink, made(1))
        lab.freeze()
        told = await send(sink, events)
        await lab.until_frozen()
        demand(not told.ids(Verdict.DELIVERED), f"nothing passed, and events were delivered: {told}")
        demand(not told.ids(Verdict.REFUSED), f"a silent network is no refusal: {told}")
        lab.heal()
        unknown = len(told.ids(Verdict.UNKNOWN)) + await send_until_delivered(sink, events)
        repeats = 0 if sink.dedupes else unknown
        judge(events, [event.id for event in events], await lab.received(), repeats_max=repeats)
    finally:
        lab.heal()
        await sink.close()


async def settles_nothing_after_a_call_was_cancelled_in_a_silence(lab: SinkLab) -> None:
    """Cancelled while events are under way; what the relay sends then keeps the order."""
    sink, events = lab.sink(), made(12, lanes_=3)
    try:
        await send(sink, made(1))
        lab.freeze()
        told = Told()
        task = asyncio.create_task(sink.send(events, told.settle))
        await lab.until_frozen()
        task.cancel()
        await asyncio.wait([task])
        demand(task.cancelled(), f"a cancelled call ended with {_error(task)!r}")
        told.ended = True
        lab.heal()
        unknown = len(events) + await send_until_delivered(sink, events)
        repeats = 0 if sink.dedupes else unknown
        judge(events, [event.id for event in events], await lab.received(), repeats_max=repeats)
    finally:
        lab.heal()
        await sink.close()


async def ends_a_call_when_it_is_closed_under_it(lab: SinkLab) -> None:
    """A relay that stops: the call ends soon, with SinkAway or without, and makes nothing up."""
    sink, events = lab.sink(), made(12, lanes_=3)
    try:
        await send(sink, made(1))
        lab.freeze()
        under_way = asyncio.create_task(send(sink, events))
        await lab.until_frozen()
        await _close(sink)
        told = await under_way
        demand(not told.ids(Verdict.DELIVERED, Verdict.REFUSED), f"nothing passed, and events got a verdict: {told}")
        lab.heal()
        unknown = len(told.ids(Verdict.UNKNOWN)) + await send_until_delivered(sink, events)
        repeats = lab.mock_repeats_max + (0 if sink.dedupes else unknown)
        judge(events, [event.id for event in events], await lab.received(), repeats_max=repeats)
    finally:
        lab.heal()
        await sink.close()


async def closes_when_the_receiver_is_gone(lab: SinkLab) -> None:
    """Frozen, and down: close() comes back soon and says nothing."""
    for trouble in (lab.freeze, lab.stop):
        sink = lab.sink()
        await send(sink, made(1))
        trouble()
        try:
            await _close(sink)
        finally:
            lab.heal()


async def is_away_when_its_login_is_refused(lab: SinkLab) -> None:
    """No event is blamed, nothing arrives, and no secret is in the error or in the sink's repr."""
    sink, events = lab.stranger(), made(3)
    try:
        told = await send(sink, events)
        demand(told.away is not None, f"the login was refused, and the sink did not say so: {told}")
        demand(not told.outcomes, f"the login was refused, and events got a verdict: {told}")
        demand(not {one.id for one in await lab.received()} & {event.id for event in events}, "something arrived")
        for text in (str(told.away), repr(told.away), repr(sink), str(vars(sink)) if hasattr(sink, "__dict__") else ""):
            demand(not lab.secret or lab.secret not in text, "a secret is in the error or in the sink's repr")
    finally:
        await sink.close()


_ALWAYS: tuple[Check, ...] = (
    delivers_a_batch_in_the_order_of_each_lane,
    delivers_a_long_lane_in_order,
    takes_a_repeat_as_it_says,
    refuses_what_is_too_large_and_names_both_sizes,
    takes_the_largest_that_it_allows,
    settles_nothing_after_a_cancelled_call,
    takes_batches_that_overlap,
    closes_before_it_was_opened_and_twice,
)
_NETWORK: tuple[Check, ...] = (
    says_unknown_when_the_answer_is_lost_after_it_was_stored,
    loses_nothing_when_it_is_cut_in_the_middle,
    keeps_overlapping_batches_apart_when_it_is_cut,
    says_of_part_of_a_batch_only_what_it_knows,
    is_patient_with_a_slow_receiver,
    blames_no_event_while_the_receiver_is_down,
    ends_by_itself_when_nothing_passes_any_more,
    settles_nothing_after_a_call_was_cancelled_in_a_silence,
    ends_a_call_when_it_is_closed_under_it,
    closes_when_the_receiver_is_gone,
)
_LOGIN: tuple[Check, ...] = (is_away_when_its_login_is_refused,)


def checks(*offers: str) -> tuple[Check, ...]:
    """The checks for a lab that offers this: "network", "login"."""
    parts = {"network": _NETWORK, "login": _LOGIN}
    return (*_ALWAYS, *(check for offer in offers for check in parts[offer]))


async def _close(sink: Sink) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS_MAX):
            await sink.close()
    except TimeoutError:
        demand(holds=False, rule=f"close() did not end within {CLOSE_SECONDS_MAX:g} s")
    except SinkAway as away:
        demand(holds=False, rule=f"close() raised because the receiver is gone: {away}")


def _error(task: asyncio.Task[None]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
