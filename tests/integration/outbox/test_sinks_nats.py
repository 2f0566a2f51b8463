"""The NATS sink on a real server with JetStream."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from livewell.outbox.sink import Verdict
from livewell.testing.sinks import Check, checks
from livewell.testing.sinks.small_relay import made, send
from tests.integration.outbox.labs.nats import NatsLab


@pytest.mark.parametrize("check", checks("network", "login"), ids=lambda check: check.__name__)
async def test_nats_conforms(check: Check, nats_lab: NatsLab) -> None:
    """Every check of the suite."""
    await check(nats_lab)


async def test_headers_count_against_the_bound_of_the_server(nats_lab: NatsLab) -> None:
    """The server says 200,000 in its INFO; more would make it close the connection."""
    sink, [event] = nats_lab.sink(event_bytes_max=1_000_000), made(1, payload='"' + "x" * 199_990 + '"')
    told = await send(sink, [event])
    await sink.close()
    outcome = told.outcomes[event.id]
    assert outcome.verdict is Verdict.REFUSED
    assert "199992 of payload" in outcome.detail
    assert "the server takes 200000" in outcome.detail


async def test_a_subject_without_a_stream_fails(nats_lab: NatsLab) -> None:
    """Not refused: the stream may be made later."""
    sink, [event] = nats_lab.sink(prefix="nobody."), made(1)
    told = await send(sink, [event])
    await sink.close()
    assert told.outcomes[event.id].verdict is Verdict.FAILED
    assert "no stream takes the subject nobody.orders.created" in told.outcomes[event.id].detail


async def test_a_missing_right_fails_at_once(nats_lab: NatsLab) -> None:
    """The server answers it beside the stream; without a look there it would be unknown."""
    sink, [event] = nats_lab.sink(user="narrow", answer_seconds=20.0), made(1)
    told = await send(sink, [event])
    await sink.close()
    assert told.outcomes[event.id].verdict is Verdict.FAILED
    assert "no right to publish" in told.outcomes[event.id].detail


async def test_a_full_stream_fails(nats_lab: NatsLab) -> None:
    """And says what the stream said."""
    full = type(nats_lab)(nats_lab.proxy, int(nats_lab._direct.rpartition(":")[2]))
    await full.make_stream(max_msgs=1, discard="new")
    sink, events = full.sink(), made(2)
    told = await send(sink, events)
    await sink.close()
    assert told.outcomes[events[0].id].verdict is Verdict.DELIVERED
    assert told.outcomes[events[1].id].verdict is Verdict.FAILED
    assert "maximum messages exceeded" in told.outcomes[events[1].id].detail


@pytest.mark.parametrize("topic", ["a b", "a.*", "a..b", ">", "a\nb"])
async def test_a_topic_that_is_no_subject_is_refused(nats_lab: NatsLab, topic: str) -> None:
    """It would be another command of the protocol, or a wildcard."""
    sink, [event] = nats_lab.sink(prefix=""), made(1)
    told = await send(sink, [replace(event, topic=topic)])
    await sink.close()
    assert told.outcomes[event.id].verdict is Verdict.REFUSED


async def test_first_calls_that_overlap_share_one_connection(nats_lab: NatsLab) -> None:
    """Without the lock around opening, all but one were left open and forgotten."""
    sink, events = nats_lab.sink(), made(8, lanes_=4)
    await asyncio.gather(*(send(sink, [event for event in events if event.lane == lane]) for lane in range(4)))
    await sink.close()
    assert nats_lab.proxy.counts.connections == 1
