"""F-D4, F-D5 and contract 21.

Ten seconds for everything (half a second here), whatever the other side does with them.
"""

import asyncio
import socket
import time
from collections.abc import Sequence

import pytest

from livewell.outbound import Outbound
from livewell.outbound.client import DEADLINE_SECONDS
from livewell.testing import FakeUpstream
from livewell.testing.processes import eventually_async
from tests.integration.outbound.hostile import HostileServer, Visit, answering
from tests.integration.outbound.support import BODY_BYTES_MAX, ended, failure

SLACK_SECONDS = 2.0  # a busy machine; every fault below would last for ever
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


async def drip(visit: Visit, head: bytes) -> None:
    """Head, then a byte at a time, much more often than any timeout between two reads."""
    if await visit.request():
        await visit.send(head)
        while True:
            await visit.send(b"x", pause_seconds=0.02)


async def drip_body(visit: Visit) -> None:
    await drip(visit, HEAD)


async def drip_head(visit: Visit) -> None:
    await drip(visit, b"HTTP/1.1 200 OK\r\nX: ")


async def drip_chunks(visit: Visit) -> None:
    if await visit.request():
        await visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await visit.send(b"1\r\nx\r\n", pause_seconds=0.02)


async def continue_for_ever(visit: Visit) -> None:
    if await visit.request():
        while True:
            await visit.send(b"HTTP/1.1 100 Continue\r\n\r\n", pause_seconds=0.02)


@pytest.mark.parametrize(
    "serve",
    [drip_body, drip_head, drip_chunks, continue_for_ever, answering(hold=True), answering(HEAD, hold=True)],
    ids=["drip in the body", "drip in the head", "drip in chunks", "100 for ever", "silence", "silence in the body"],
)
async def test_no_way_of_being_slow_outlasts_the_deadline(hasty: Outbound, serve: object) -> None:
    """The deadline is around the call, so bytes that come do not move it."""
    async with HostileServer(serve) as server:  # type: ignore[arg-type]  # one of those above
        started = time.monotonic()
        failed = await failure(hasty, server.url)
        seconds = time.monotonic() - started

        await server.closed(1)  # and the connection is ended, not left to drip on

    assert (failed.reason, failed.sent) == ("deadline", True)
    assert 0.5 <= seconds < 0.5 + SLACK_SECONDS


async def test_one_byte_a_second_is_cut_at_the_deadline(hasty: Outbound, upstream: FakeUpstream) -> None:
    """The upstream's log shows that the client left (F-D4)."""
    await upstream.behave(drip_bytes_per_second=1.0)

    failed = await failure(hasty, f"{upstream.url}/quote?symbol=A")

    assert failed.reason == "deadline"
    (call,) = await ended(upstream, 1)
    assert call.ending == "client_left"
    assert call.ended_ns is not None
    assert (call.ended_ns - call.at_ns) / 1e9 < 0.5 + SLACK_SECONDS


async def test_a_frozen_upstream_is_given_up(hasty: Outbound, freezable: FakeUpstream) -> None:
    """The kernel accepts, nobody answers (F-D5); when it thaws the client is usable."""
    freezable.process.freeze()
    try:
        failed = await failure(hasty, f"{freezable.url}/quote?symbol=A")
    finally:
        freezable.process.thaw()

    assert failed.reason == "deadline"
    assert (await hasty.get(f"{freezable.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX)).status == 200


async def test_a_socket_that_accepts_nobody_is_given_up(hasty: Outbound) -> None:
    """A full backlog drops our SYN: connecting itself never ends."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
            failed = await failure(hasty, f"http://127.0.0.1:{deaf.getsockname()[1]}/")
        finally:
            for filler in fillers:
                filler.close()

    assert (failed.reason, failed.sent, failed.wire_bytes) == ("deadline", False, 0)


async def test_a_dead_name_server_is_given_up() -> None:
    """The look-up counts too."""

    async def never(_: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async with Outbound(allowed_hosts=["api.test"], deadline_seconds=0.2, resolve=never) as client:
        failed = await failure(client, "https://api.test/")

    assert (failed.reason, failed.sent) == ("deadline", False)


async def test_a_full_pool_is_given_up(upstream: FakeUpstream) -> None:
    """Waiting for a connection counts too."""
    await upstream.behave(path="/slow", fault="hang")
    async with Outbound(
        allowed_hosts=[], private_hosts=["127.0.0.1"], deadline_seconds=0.3, connections_max=1
    ) as client:
        first, second = await asyncio.gather(
            failure(client, f"{upstream.url}/slow"), failure(client, f"{upstream.url}/slow")
        )

    assert (first.reason, second.reason) == ("deadline", "deadline")


async def test_cancelling_a_call_ends_its_connection(outbound: Outbound) -> None:
    """A job that is cancelled leaves nothing behind."""
    async with HostileServer(answering(HEAD, hold=True)) as server:
        call = asyncio.create_task(outbound.get(server.url, body_bytes_max=BODY_BYTES_MAX))
        await eventually_async(lambda: server.requests)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.closed(1)


def test_the_deadline_is_ten_seconds() -> None:
    """R15."""
    assert DEADLINE_SECONDS == 10
