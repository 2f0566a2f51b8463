"""The Redis sink on a real Valkey server."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import Redis

from livewell.outbox.sink import Verdict
from livewell.testing.sinks import Check, checks
from livewell.testing.sinks.small_relay import made, send
from tests.integration.outbox.labs.parts import PASSWORD
from tests.integration.outbox.labs.redis import RedisLab


@pytest.mark.parametrize("check", checks("network", "login"), ids=lambda check: check.__name__)
async def test_redis_conforms(check: Check, redis_lab: RedisLab) -> None:
    """Every check of the suite."""
    await check(redis_lab)


async def test_an_entry_has_the_attributes_of_the_event(redis_lab: RedisLab) -> None:
    """By their names, and the payload as data."""
    sink, [event] = redis_lab.sink(), made(1)
    await send(sink, [event])
    await sink.close()
    client = Redis.from_url(redis_lab.direct, decode_responses=True)
    entries: Any = await client.xrange(redis_lab.stream)
    await client.aclose()
    [(_, entry)] = entries
    assert entry == {**event.attributes(), "data": event.payload}


async def test_a_stream_is_kept_short(redis_lab: RedisLab) -> None:
    """About as long as was asked: Redis cuts whole nodes."""
    sink = redis_lab.sink(stream_max=100)
    await send(sink, made(600, lanes_=300))
    await sink.close()
    assert 100 <= len(await redis_lab.received()) < 300


async def test_a_key_that_is_no_stream_fails_and_its_lane_ends(redis_lab: RedisLab) -> None:
    """Of one event, not of the server."""
    client = Redis.from_url(redis_lab.direct)
    await client.set(redis_lab.stream, "text")
    sink, events = redis_lab.sink(), made(4, lanes_=2)
    told = await send(sink, events)
    await sink.close()
    await client.delete(redis_lab.stream)
    await client.aclose()
    assert told.ids(Verdict.FAILED) == [events[0].id, events[1].id]
    assert told.away is None
    assert len(told.outcomes) == 2


async def test_a_full_server_is_away(redis_lab: RedisLab) -> None:
    """OOM is nobody's fault among the events."""
    client = Redis.from_url(redis_lab.direct)
    sink, events = redis_lab.sink(), made(3)
    await send(sink, made(1))
    await client.config_set("maxmemory", "1")
    try:
        told = await send(sink, events)
    finally:
        await client.config_set("maxmemory", "0")
        await client.aclose()
        await sink.close()
    assert told.away is not None
    assert told.outcomes == {}


async def test_a_user_without_the_right_is_away(redis_lab: RedisLab) -> None:
    """The command is not allowed: a login to mend."""
    client: Any = Redis.from_url(redis_lab.direct)  # its commands have no types
    await client.execute_command("ACL", "SETUSER", "reader", "on", f">{PASSWORD}", "~*", "+@read", "+ping")
    sink, events = redis_lab.sink(user="reader"), made(3)
    told = await send(sink, events)
    await sink.close()
    await client.execute_command("ACL", "DELUSER", "reader")
    await client.aclose()
    assert told.away is not None
    assert "permissions" in str(told.away)
    assert told.outcomes == {}


@pytest.mark.parametrize("fault", ["cut", "freeze"])
async def test_a_connection_that_died_while_it_idled_makes_no_event_unknown(redis_lab: RedisLab, fault: str) -> None:
    """It is asked first. Cut, it is replaced; silent, the sink is away, and nothing was sent."""
    sink, events = redis_lab.sink(answer_seconds=0.5, connect_seconds=0.5), made(3)
    await send(sink, made(1))
    for connection in vars(sink)["_client"].connection_pool._available_connections:
        connection.next_health_check = 0.0  # as if it had idled for a second
    getattr(redis_lab, fault)()
    told = await send(sink, events)
    redis_lab.heal()
    await sink.close()
    assert told.ids(Verdict.UNKNOWN) == []
    assert (len(told.ids(Verdict.DELIVERED)), told.away is None) == ((3, True) if fault == "cut" else (0, False))
