"""F-D13, F-D14: a body of any size costs little memory and is cut at its cap, packed or not."""

import asyncio
import gzip
import resource
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from livewell.outbound import Outbound
from livewell.testing import FakeUpstream
from tests.integration.outbound.hostile import HostileServer, Visit, answering
from tests.integration.outbound.support import BODY_BYTES_MAX, ended, failure

READ_AHEAD_BYTES = 600_000  # one read of the loop (256 KB), aiohttp's buffer, and its twin while it grows


@pytest.fixture
def _traced() -> Iterator[None]:
    """Let Python count what it holds during the test."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("_traced")
@pytest.mark.parametrize("length", ["stated", "chunked", "until_close"])
async def test_a_body_of_two_gigabytes_is_cut_at_its_cap(
    outbound: Outbound, upstream: FakeUpstream, length: str
) -> None:
    """Announced it is not read at all; unannounced it is read up to the cap (F-D13)."""
    await upstream.behave(body="huge", size_bytes=2_000_000_000, gzip=0, length=length)

    failed = await failure(outbound, f"{upstream.url}/quote?symbol=A")

    assert failed.reason == "too_large"
    assert failed.wire_bytes < BODY_BYTES_MAX + READ_AHEAD_BYTES
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    (call,) = await ended(upstream, 1)
    assert (call.ending, call.content_bytes < 20_000_000) == ("client_left", True)  # what the kernel's buffers took


@pytest.mark.usefixtures("_traced")
@pytest.mark.parametrize("body_bytes_max", [100_000, 900_000_000])
async def test_a_bomb_is_cut_whatever_the_bound(
    outbound: Outbound, upstream: FakeUpstream, body_bytes_max: int
) -> None:
    """300 MB in 300 KB (F-D14): by the bound where that is small, by the ratio where it is not."""
    await upstream.behave(body="huge", size_bytes=300_000_000, gzip=1)

    failed = await failure(outbound, f"{upstream.url}/quote?symbol=A", body_bytes_max)

    assert failed.reason == ("too_large" if body_bytes_max == 100_000 else "bomb")
    assert tracemalloc.get_traced_memory()[1] < 8_000_000


async def test_fifty_bombs_and_fifty_floods_at_once_stay_small(outbound: Outbound, upstream: FakeUpstream) -> None:
    """Resident memory, not only Python's own count."""
    await upstream.behave(path="/bomb", body="huge", size_bytes=300_000_000, gzip=1)
    await upstream.behave(path="/flood", body="huge", size_bytes=2_000_000_000, gzip=0, length="chunked")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    failed = await asyncio.gather(
        *(failure(outbound, f"{upstream.url}/{what}", 1_000_000) for what in ("bomb", "flood") for _ in range(50))
    )

    assert {one.reason for one in failed} <= {"bomb", "too_large"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000  # KB; the bodies would be 115 GB


@pytest.mark.parametrize(
    ("encoding", "reason"), [("br", "content_type"), ("zstd", "content_type"), ("gzip, gzip", "content_type")]
)
async def test_encodings_that_were_not_asked_for_are_refused(
    outbound: Outbound, upstream: FakeUpstream, encoding: str, reason: str
) -> None:
    """By their name, before a byte is unpacked."""
    await upstream.behave(content=b"\x1b\x03\x00", gzip=0, headers={"Content-Encoding": encoding})

    assert (await failure(outbound, f"{upstream.url}/quote?symbol=A")).reason == reason


async def test_a_bomb_inside_a_bomb_is_refused_or_stays_packed(outbound: Outbound) -> None:
    """Announced twice it is refused.

    Announced once, one layer is undone and the rest is just bytes.
    """
    inner = gzip.compress(gzip.compress(bytes(10_000_000)))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(inner)
    async with HostileServer(answering(head, inner)) as server:
        answer = await outbound.get(server.url, body_bytes_max=BODY_BYTES_MAX)

    assert zlib.decompress(answer.body, 31) == bytes(10_000_000)


async def test_headers_without_end_are_cut(outbound: Outbound) -> None:
    """A head has its own bound, and interim answers count to it."""

    async def serve(visit: Visit) -> None:
        if await visit.request():
            while True:
                await visit.send(b"HTTP/1.1 103 Early Hints\r\nLink: %s\r\n\r\n" % (b"a" * 4000))

    async with HostileServer(serve) as server:
        failed = await failure(outbound, server.url)

    assert failed.reason == "too_large"
    assert failed.wire_bytes < BODY_BYTES_MAX + READ_AHEAD_BYTES


@pytest.mark.parametrize("size", [999, 1000, 1001])
async def test_the_bound_is_exact(outbound: Outbound, upstream: FakeUpstream, size: int) -> None:
    """So many bytes are allowed, and not one more, packed and plain."""
    for layers in (0, 1):
        await upstream.behave(content=b"7" * size, gzip=layers)
        if size > 1000:
            assert (await failure(outbound, upstream.url, 1000)).reason == "too_large"
        else:
            assert len((await outbound.get(upstream.url, body_bytes_max=1000)).body) == size
