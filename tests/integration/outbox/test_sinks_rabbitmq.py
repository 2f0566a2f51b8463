"""The RabbitMQ sink on a real broker."""

from __future__ import annotations

import asyncio

import pytest

from livewell.outbox.sink import Verdict
from livewell.testing.sinks import Check, checks
from livewell.testing.sinks.small_relay import made, send
from tests.integration.outbox.labs.rabbitmq import RabbitLab


@pytest.mark.parametrize("check", checks("network", "login"), ids=lambda check: check.__name__)
async def test_rabbitmq_conforms(check: Check, rabbit_lab: RabbitLab) -> None:
    """Every check of the suite."""
    await check(rabbit_lab)


async def test_a_routing_key_that_no_queue_takes_fails(rabbit_lab: RabbitLab) -> None:
    """It comes back, instead of vanishing with an ack; seen failing without `mandatory`."""
    sink, [event] = rabbit_lab.sink(prefix="nobody."), made(1)
    told = await send(sink, [event])
    await sink.close()
    assert told.outcomes[event.id].verdict is Verdict.FAILED
    assert "no queue takes the routing key 'nobody.orders.created'" in told.outcomes[event.id].detail


async def test_an_exchange_that_is_not_there_is_away(rabbit_lab: RabbitLab) -> None:
    """A mistake in the options, not in an event."""
    sink, events = rabbit_lab.sink(exchange="nowhere"), made(2)
    told = await send(sink, events)
    await sink.close()
    assert told.away is not None
    assert "nowhere" in str(told.away)
    assert told.outcomes == {}


async def test_a_full_queue_fails(rabbit_lab: RabbitLab) -> None:
    """The broker answers nack."""
    full = RabbitLab(rabbit_lab.proxy, 0)
    full.direct = rabbit_lab.direct
    await full.make_queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    sink, events = full.sink(), made(3, lanes_=1)
    told = await send(sink, events)
    await sink.close()
    assert told.ids(Verdict.FAILED)
    assert "nack" in told.outcomes[told.ids(Verdict.FAILED)[0]].detail


async def test_first_calls_that_overlap_share_one_connection(rabbit_lab: RabbitLab) -> None:
    """Without the lock around opening, all but one were left open and forgotten."""
    sink, events = rabbit_lab.sink(), made(8, lanes_=4)
    await asyncio.gather(*(send(sink, [event for event in events if event.lane == lane]) for lane in range(4)))
    await sink.close()
    assert rabbit_lab.proxy.counts.connections == 1
