"""One permit, one request: asked on the connected socket, and never sent again behind our back.

The judge is the server's log. aiohttp repeats a GET by itself when a kept-alive connection turns
out to be dead; the first test shows that it does, the others that ours does not.
"""

import asyncio

import aiohttp
import pytest

from livewell.errors import CallFailed, PermitLate
from livewell.outbound import Outbound
from livewell.testing import FakeUpstream
from tests.integration.outbound.hostile import HostileServer, Visit
from tests.integration.outbound.support import BODY_BYTES_MAX, about, ended, failure

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


async def drop_the_second(visit: Visit) -> None:
    """Answer a connection's first request, read its second, and close without a word."""
    if await visit.request():
        await visit.send(ANSWER)
        await visit.request()


async def reset_the_second(visit: Visit) -> None:
    """The same with a reset."""
    await drop_the_second(visit)
    visit.reset()


@pytest.mark.parametrize("serve", [drop_the_second, reset_the_second])
async def test_bare_aiohttp_sends_a_dropped_request_again(serve: object) -> None:
    """The fault is real: two calls, three requests."""
    async with HostileServer(serve) as server, aiohttp.ClientSession() as session:  # type: ignore[arg-type]  # one of the two above
        for _ in range(2):
            async with session.get(server.url) as response:
                await response.read()

    assert len(server.requests) == 3


@pytest.mark.parametrize("serve", [drop_the_second, reset_the_second])
@pytest.mark.parametrize("switch", [False, True])
async def test_a_dropped_request_is_not_sent_again(outbound: Outbound, serve: object, switch: bool) -> None:
    """Two permits, two requests, the second a failure.

    Also if aiohttp's own switch were on (seen: 3 requests without ours).
    """
    permits = 0

    def spend() -> None:
        nonlocal permits
        permits += 1

    for session in outbound._sessions.values():
        session._retry_connection = switch
    async with HostileServer(serve) as server:  # type: ignore[arg-type]  # one of the two above
        await outbound.get(server.url, body_bytes_max=10, before_write=spend, share=about("A"))
        with pytest.raises(CallFailed) as caught:
            await outbound.get(server.url, body_bytes_max=10, before_write=spend, share=about("B"))

    assert (caught.value.reason, caught.value.sent, caught.value.alone) == ("connection", True, False)
    assert (permits, len(server.requests)) == (2, 2)


@pytest.mark.parametrize(
    "fault", ["close_before_head", "reset_before_head", "close_in_body", "reset_in_body", "close_after_answer"]
)
async def test_every_way_to_drop_a_call_is_one_request(outbound: Outbound, upstream: FakeUpstream, fault: str) -> None:
    """Twenty at once, on new and kept connections.

    The upstream's log has exactly as many calls as permits were spent.
    """
    permits = 0

    def spend() -> None:
        nonlocal permits
        permits += 1

    async def call(key: str) -> None:
        try:
            await outbound.get(
                f"{upstream.url}/quote?symbol={key}",
                body_bytes_max=BODY_BYTES_MAX,
                before_write=spend,
                share=about(key),
            )
        except CallFailed:
            return

    await asyncio.gather(*(call(f"A{number}") for number in range(20)))
    await upstream.behave(fault=fault, cut_at_bytes=5)
    await asyncio.gather(*(call(f"B{number}") for number in range(20)))

    assert len(await ended(upstream, 40)) == permits == 40


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "error", [PermitLate("too late"), OSError("disk"), TimeoutError(), aiohttp.ClientError("x"), KeyError("k")]
)
async def test_a_permit_that_is_refused_sends_nothing(
    outbound: Outbound, upstream: FakeUpstream, error: Exception, kept: bool
) -> None:
    """Whatever it raises comes out as it is, and the upstream never sees a request."""
    if kept:
        await outbound.get(f"{upstream.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX, share=about("A"))

    def refuse() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await outbound.get(
            f"{upstream.url}/quote?symbol=B", body_bytes_max=BODY_BYTES_MAX, before_write=refuse, share=about("B")
        )
    assert caught.value is error

    await outbound.get(f"{upstream.url}/quote?symbol=C", body_bytes_max=BODY_BYTES_MAX)
    assert [call.keys for call in upstream.log.read()] == [*([("A",)] if kept else []), ("C",)]


async def test_the_permit_is_asked_when_the_connection_stands(outbound: Outbound) -> None:
    """Not before: the time a connection takes would be taken from the permit's."""
    seen: list[tuple[int, int]] = []

    async def serve(visit: Visit) -> None:
        await visit.request()
        await visit.send(ANSWER)

    async with HostileServer(serve) as server:
        # The server accepts in a later turn of the loop, so what it knows says nothing; the
        # client's own side does.
        def look() -> None:
            connector = outbound._sessions[True].connector
            assert connector is not None
            connected = [one for one in connector._acquired if one.is_connected()]
            seen.append((len(connected), len(server.requests)))

        await outbound.get(server.url, body_bytes_max=10, before_write=look)

    assert seen == [(1, 0)]
    assert len(server.requests) == 1


async def test_no_permit_is_spent_where_nobody_can_be_reached(outbound: Outbound) -> None:
    """A refused connection asks for nothing."""

    def spend() -> None:
        raise AssertionError("asked")

    async with HostileServer(drop_the_second) as server:
        port = server.port
    with pytest.raises(CallFailed) as caught:
        await outbound.get(f"http://127.0.0.1:{port}/", body_bytes_max=10, before_write=spend)

    assert (caught.value.reason, caught.value.sent) == ("connection", False)


async def test_a_redirect_is_one_request(outbound: Outbound, upstream: FakeUpstream) -> None:
    """The Location is not followed; following would be a second call on one permit."""
    await upstream.behave(status=302, headers={"Location": f"{upstream.url}/elsewhere"}, path="/quote")

    answer = await outbound.get(f"{upstream.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX)

    assert answer.status == 302
    assert [call.path for call in upstream.log.read()] == ["/quote"]
    assert (await failure(outbound, "http://127.0.0.1:1/")).sent is False
