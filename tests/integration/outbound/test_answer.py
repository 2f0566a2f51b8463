"""An answer comes whole, with the bytes it cost as the upstream's own log counts them (R16)."""

import json
import zlib

import pytest

from livewell.errors import InvalidOption, LivewellError
from livewell.outbound import Outbound
from livewell.testing import FakeUpstream
from tests.integration.outbound.hostile import HostileServer, answering
from tests.integration.outbound.support import BODY_BYTES_MAX, LOCAL, ended, failure


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("length", ["stated", "chunked", "until_close"])
async def test_bytes_are_those_of_the_upstreams_own_log(
    outbound: Outbound, upstream: FakeUpstream, length: str, layers: int
) -> None:
    """Status line, headers and body as sent, framing included.

    And the body after unpacking (contract 6a).
    """
    await upstream.behave(length=length, gzip=layers, fields={"name": "x" * 5000})

    answers = [await outbound.get(f"{upstream.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX) for _ in range(3)]

    calls = await ended(upstream, 3)
    assert [answer.wire_bytes for answer in answers] == [call.wire_bytes for call in calls]
    assert [answer.decoded_bytes for answer in answers] == [call.content_bytes for call in calls]
    assert [json.loads(answer.body)[0]["version"] for answer in answers] == [1, 2, 3]
    assert {answer.had_length for answer in answers} == {length == "stated"}


async def test_bytes_count_also_when_the_call_fails(outbound: Outbound, upstream: FakeUpstream) -> None:
    """What was received was paid for."""
    await upstream.behave(fault="close_in_body", cut_at_bytes=1000, gzip=0, fields={"name": "x" * 5000})

    failed = await failure(outbound, f"{upstream.url}/quote?symbol=A")

    assert (failed.reason, failed.status, failed.sent) == ("truncated", 200, True)
    assert failed.wire_bytes == (await ended(upstream, 1))[0].wire_bytes > 1000


@pytest.mark.parametrize("status", [200, 204, 304, 400, 402, 404, 429, 500, 503])
async def test_every_status_is_an_answer(outbound: Outbound, upstream: FakeUpstream, status: int) -> None:
    """What it means is for the wall classifier and validate to say."""
    await upstream.behave(status=status, headers={"Retry-After": "3", "ETag": '"a"'})

    answer = await outbound.get(f"{upstream.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX)

    assert (answer.status, answer.headers["retry-after"], answer.headers["etag"]) == (status, "3", '"a"')


@pytest.mark.parametrize("data", [zlib.compress(b'[{"a":1}]'), zlib.compress(b'[{"a":1}]')[2:-4]], ids=["zlib", "raw"])
async def test_deflate_is_understood_in_both_spellings(outbound: Outbound, data: bytes) -> None:
    """Some servers send it unasked, with or without its head."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(data)
    async with HostileServer(answering(head, data)) as server:
        answer = await outbound.get(server.url, body_bytes_max=BODY_BYTES_MAX)

    assert answer.body == b'[{"a":1}]'


async def test_the_request_is_plain_and_tells_who_asks(outbound: Outbound) -> None:
    """GET, host, gzip and nothing that a library adds on its own."""
    async with HostileServer(answering(b"HTTP/1.1 204 No Content\r\n\r\n")) as server:
        await outbound.get(f"{server.url}/a%20b?c=%5Ed&e=1,2", headers={"X-Mine": "1"}, body_bytes_max=0)

    first, *lines = server.requests[0].decode().strip().split("\r\n")
    assert first == "GET /a%20b?c=%5Ed&e=1,2 HTTP/1.1"
    assert sorted(line.split(":")[0] for line in lines) == ["Accept", "Accept-Encoding", "Host", "User-Agent", "X-Mine"]
    assert "Accept-Encoding: gzip" in lines
    assert f"Host: 127.0.0.1:{server.port}" in lines


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "1\r\nX-Evil: 2"),
        ("X-A", "1\n"),
        ("X-A", "é"),
        ("X-A", " padded"),
        ("X-A", "\0"),
        ("X-A\r\nX-Evil", "1"),
        ("X A", "1"),
        ("", "1"),
        ("Host", "evil.test"),
        ("Transfer-Encoding", "chunked"),
        ("content-length", "5"),
        ("Accept-Encoding", "br"),
    ],
)
async def test_a_header_cannot_smuggle_another(outbound: Outbound, name: str, value: str) -> None:
    """It is refused before anybody is called (F-D19)."""
    async with HostileServer(answering(b"HTTP/1.1 204 No Content\r\n\r\n")) as server:
        with pytest.raises(InvalidOption):
            await outbound.get(server.url, headers={name: value}, body_bytes_max=0)

    assert server.connections == 0


async def test_cookies_are_not_kept(outbound: Outbound) -> None:
    """What one answer sets, no later request carries."""
    async with HostileServer(answering(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nConnection: close\r\n\r\n")) as server:
        for _ in range(2):
            await outbound.get(server.url, body_bytes_max=0)

    assert not any(b"cookie" in request.lower() for request in server.requests)
    assert len(server.requests) == 2


async def test_a_proxy_in_the_environment_is_not_used(
    monkeypatch: pytest.MonkeyPatch, outbound: Outbound, upstream: FakeUpstream
) -> None:
    """A proxy would connect where it likes; the guard speaks only for our own connections."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert (await outbound.get(f"{upstream.url}/quote?symbol=A", body_bytes_max=BODY_BYTES_MAX)).status == 200


async def test_a_client_that_is_not_open_says_so() -> None:
    """And it can be opened again after it was closed."""
    client = Outbound(allowed_hosts=[], private_hosts=LOCAL)
    with pytest.raises(LivewellError, match="not open"):
        await client.get("http://127.0.0.1:1/", body_bytes_max=0)
    for _ in range(2):
        async with client, HostileServer(answering(b"HTTP/1.1 204 No Content\r\n\r\n")) as server:
            assert (await client.get(server.url, body_bytes_max=0)).status == 204


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"\r\n\r\n",
        b"rubbish",
        b"<html>down</html>\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\nBad Header: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 2_000 + b"\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"\xff" * 1000,
    ],
)
async def test_what_is_not_http_is_a_failed_connection(outbound: Outbound, wire: bytes) -> None:
    """Typed, counted, and without a word of what came."""
    async with HostileServer(answering(wire)) as server:
        failed = await failure(outbound, server.url)

    assert (failed.reason, failed.sent) == ("connection", True)
    assert failed.wire_bytes == len(wire)
    assert "OpenSSH" not in str(failed)


async def test_nobody_there_is_a_failed_connection_and_nothing_was_sent(outbound: Outbound) -> None:
    """A refused port and a name without address alike."""
    async with HostileServer(answering()) as server:
        port = server.port
    failed = await failure(outbound, f"http://127.0.0.1:{port}/")

    assert (failed.reason, failed.sent, failed.wire_bytes) == ("connection", False, 0)
