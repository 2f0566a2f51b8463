"""F-D3: an answer cut at any byte is never a whole one."""

import gzip

import pytest

from livewell.errors import CallFailed
from livewell.outbound import Outbound
from livewell.testing import FakeUpstream
from tests.integration.outbound.hostile import HostileServer, Visit
from tests.integration.outbound.support import BODY_BYTES_MAX

BODY = b'[{"symbol":"AAPL","price":231.41}]'
STATED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (
    10,
    BODY[:10],
    len(BODY) - 10,
    BODY[10:],
)
_PACKED = gzip.compress(BODY, mtime=0)
PACKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + _PACKED


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("wire", [STATED, CHUNKED, PACKED], ids=["stated", "chunked", "gzip until close"])
async def test_a_cut_at_every_byte_is_noticed(outbound: Outbound, wire: bytes, reset: bool) -> None:
    """In the head it is a failed connection, in the body a truncated answer.

    The whole is the only answer.
    """
    cut = 0

    async def serve(visit: Visit) -> None:
        if await visit.request():
            await visit.send(wire[:cut], pause_seconds=0.001 if reset else 0)
            if reset:
                visit.reset()

    head = wire.index(b"\r\n\r\n") + 4
    reasons: list[str] = []
    async with HostileServer(serve) as server:
        for cut in range(len(wire)):
            with pytest.raises(CallFailed) as caught:
                await outbound.get(server.url, body_bytes_max=BODY_BYTES_MAX)
            reasons.append(caught.value.reason)
            assert caught.value.wire_bytes <= cut
        cut = len(wire)
        whole = await outbound.get(server.url, body_bytes_max=BODY_BYTES_MAX)

    assert whole.body == BODY
    assert set(reasons[:head]) == {"connection"}
    assert set(reasons[head:]) <= ({"truncated", "connection"} if reset else {"truncated"})


async def test_a_body_without_length_that_is_cut_says_that_it_had_none(
    outbound: Outbound, upstream: FakeUpstream
) -> None:
    """HTTP cannot tell; the caller is told to look twice."""
    await upstream.behave(length="until_close", gzip=0, fault="close_in_body", cut_at_bytes=20)

    answer = await outbound.get(f"{upstream.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX)

    assert (len(answer.body), answer.had_length) == (20, False)
