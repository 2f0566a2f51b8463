"""The HTTP/1.1 server that every fake stands on: it reads strictly, sends what it is told, and
counts what left.

These tests prove the tool: a fault that does not happen, or a byte that is counted wrongly, would
make the tests of the product pass for nothing. The client is a raw socket.
"""

import asyncio
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from livewell.testing.http import (
    LAST_CHUNK,
    BadRequest,
    ClientLeft,
    Connection,
    Delivery,
    HttpServer,
    Request,
    head_lines,
)
from livewell.testing.http.request import parse
from livewell.testing.processes import eventually_async

PATIENCE_SECONDS = 20.0
GET = b"GET / HTTP/1.1\r\n\r\n"


def taken(data: bytes) -> Request | None:
    return parse(bytearray(data), 7)


# ── requests ──


def test_a_request_is_read_with_its_parts() -> None:
    """Header names in lower case, values without blanks, the query unquoted, the head as it came."""
    head = b"POST /a%20b?key=A%2FB&empty=&c+d=e+f&flag HTTP/1.1\r\nX-One: 1 \r\nContent-Length: 3\r\nx-one: \t2\r\n\r\n"
    assert taken(head + b"abc") == Request(
        at_ns=7,
        method="POST",
        path="/a b",
        query={"key": "A/B", "empty": "", "c d": "e f", "flag": ""},
        headers={"x-one": "2", "content-length": "3"},
        body=b"abc",
        keep_alive=True,
        target="/a%20b?key=A%2FB&empty=&c+d=e+f&flag",
        head=head.decode().removesuffix("\r\n\r\n"),
    )


def test_what_is_incomplete_waits_and_what_follows_stays() -> None:
    """Every beginning of a request is none yet; what is behind it remains in the buffer."""
    whole = b"PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
    for length in range(len(whole)):
        buffer = bytearray(whole[:length])
        assert parse(buffer, 0) is None
        assert buffer == whole[:length]
    buffer = bytearray(whole + GET)
    first, second = parse(buffer, 0), parse(buffer, 0)
    assert (first and first.body, second and second.path, bytes(buffer)) == (b"hi", "/", b"")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"GET / HTTP/1.1\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: Close\r\n", False),
        (b"GET / HTTP/1.0\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n", False),
    ],
)
def test_a_client_says_whether_it_keeps_the_connection(line: bytes, kept: bool) -> None:
    """By its version, and by its header."""
    request = taken(line + b"\r\n")
    assert request is not None
    assert request.keep_alive is kept


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET /a\x00b HTTP/1.1\r\n\r\n",
        b"GET nowhere HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\nX: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX : 1\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\n: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\nY: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 4000001\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 8_192,
        b"GET / HTTP/1.1\r\nX: " + b"x" * 8_192 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    """A header that was injected through a key would show as one of these."""
    with pytest.raises(BadRequest) as caught:
        taken(data)
    assert caught.value.at_ns == 7


# ── connections ──


class Client:
    """A raw client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def rest(self) -> bytes:
        """Read to the end; a reset raises."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.reader.read()


@asynccontextmanager
async def connected(server: HttpServer, data: bytes = b"") -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        yield Client(reader, writer)
    finally:
        writer.close()


def answered(body: bytes) -> bytes:
    return head_lines(200, [("Content-Length", str(len(body)))]) + b"\r\n" + body


def closing(deliver: Callable[[Delivery], Any]) -> HttpServer:
    """A server that answers each request by this, and closes."""

    async def work(connection: Connection) -> None:
        await deliver(Delivery(connection))
        connection.close()

    return HttpServer(lambda connection, _: connection.run(work(connection)))


async def test_pipelined_requests_are_answered_in_order_though_the_first_is_slow() -> None:
    """The second waits in the buffer until the task of the first is over."""

    def answer(connection: Connection, request: Request) -> None:
        if request.path == "/slow":
            connection.run(slow(connection))
        else:
            connection.write(answered(b"fast"))
            connection.close()

    async def slow(connection: Connection) -> None:
        await connection.pause(0.05)
        await connection.send(answered(b"slow"))

    two = b"GET /slow HTTP/1.1\r\n\r\nGET /fast HTTP/1.1\r\n\r\n"
    async with HttpServer(answer) as server, connected(server, two) as client:
        assert await client.rest() == answered(b"slow") + answered(b"fast")


async def test_any_bytes_can_be_sent() -> None:
    """A length that lies, half a chunk, an answer that nobody asked for: nothing is mended on the
    way.
    """
    odd = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort" + b"5\r\nhal" + answered(b"unasked")

    async with closing(lambda delivery: delivery.send(odd)) as server, connected(server, GET) as client:
        assert await client.rest() == odd


async def test_a_body_drips_in_chunks_and_is_counted_without_their_frames() -> None:
    """Each drop is a chunk, and none comes before its time."""
    deliveries: list[Delivery] = []

    async def deliver(delivery: Delivery) -> None:
        deliveries.append(delivery)
        await delivery.send_body(b"0123456789", bytes_per_second=100, chunked=True)
        await delivery.send(LAST_CHUNK)

    began = time.monotonic()
    async with closing(deliver) as server, connected(server, GET) as client:
        data = await client.rest()
    assert time.monotonic() - began >= 0.1
    assert data == b"5\r\n01234\r\n5\r\n56789\r\n" + LAST_CHUNK
    assert (deliveries[0].body_bytes, deliveries[0].sent_bytes) == (10, len(data))


@pytest.mark.parametrize("reset", [False, True])
async def test_an_answer_is_cut_by_fin_or_by_rst(reset: bool) -> None:
    """Seen to fail without SO_LINGER."""

    async def deliver(delivery: Delivery) -> None:
        await delivery.send(b"half")
        await delivery.pause(0.05)
        delivery.cut(reset=reset)

    async with closing(deliver) as server, connected(server, GET) as client:
        if reset:
            with pytest.raises(ConnectionResetError):
                await client.rest()
        else:
            assert await client.rest() == b"half"


async def test_only_bytes_that_the_kernel_took_are_counted() -> None:
    """With unsent_bytes_max=0, and a client that reads nothing, far less than was to be sent."""
    counts: list[int] = []

    async def flood(connection: Connection) -> None:
        delivery = Delivery(connection)
        try:
            while True:
                await delivery.send_body(bytes(1_000_000))
                counts.append(delivery.sent_bytes)
        finally:
            counts.append(delivery.sent_bytes)

    server = HttpServer(lambda connection, _: connection.run(flood(connection)), unsent_bytes_max=0)
    async with server, connected(server, GET) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # typed as a WriteTransport
        await asyncio.sleep(0.2)
        assert len(server.tasks) == 1
    assert counts[-1] < 20_000_000


@pytest.mark.parametrize("wait", ["pause", "hang", "gone", "send", "next_request"])
async def test_a_client_that_leaves_ends_every_wait(wait: str) -> None:
    """At once, and stamped when it left."""
    ends: list[tuple[str, int]] = []

    async def work(connection: Connection) -> None:
        delivery = Delivery(connection)
        try:
            match wait:
                case "pause":
                    await delivery.pause(600)
                case "hang":
                    await delivery.hang()
                case "gone":
                    await connection.gone()
                    ends.append(("gone", connection.left_ns))
                case "send":
                    while True:
                        await delivery.send(bytes(100_000))
                case "next_request":
                    ends.append((str(await connection.next_request()), connection.left_ns))
        except ClientLeft:
            ends.append(("left", delivery.left_ns))

    expected = {"gone": "gone", "next_request": "None"}.get(wait, "left")
    async with HttpServer(lambda connection, _: connection.run(work(connection))) as server:
        async with connected(server, GET):
            await asyncio.sleep(0.05)
            gone_ns = time.monotonic_ns()
        await eventually_async(lambda: ends, PATIENCE_SECONDS)
    [(how, left_ns)] = ends
    assert how == expected
    assert gone_ns < left_ns < time.monotonic_ns()


async def test_a_script_may_serve_a_whole_connection() -> None:
    """It speaks first, reads requests when it likes, and waits for the client to leave."""
    asked: list[str] = []

    async def script(connection: Connection) -> None:
        await connection.send(b"hello ")
        while (request := await connection.next_request()) is not None:
            asked.append(request.target)
            await connection.send(request.target.encode())

    server = HttpServer(lambda _, __: None, greet=lambda connection: connection.run(script(connection)))
    async with server, connected(server) as client:
        assert await client.reader.readexactly(6) == b"hello "
        client.writer.write(b"GET /a HTTP/1.1\r\n\r\nGET /b?c HTTP/1.1\r\n\r\n")
        assert await client.reader.readexactly(6) == b"/a/b?c"
    assert (asked, server.accepted) == (["/a", "/b?c"], 1)


async def test_what_is_no_request_is_answered_400_and_closed() -> None:
    """Unless the fake says otherwise; a request that its client leaves half-way is told to the fake
    as well.
    """
    async with HttpServer(lambda _, __: None) as server, connected(server, b"NONSENSE\r\n\r\n") as client:
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
    refused: list[str] = []
    server = HttpServer(lambda _, __: None, refuse=lambda _, error: refused.append(str(error)))
    async with server, connected(server, b"GET / HT") as client:
        client.writer.write_eof()
        assert await client.rest() == b""
    assert refused == ["the client left inside a request"]


async def test_the_end_of_a_task_is_told_even_if_it_never_began() -> None:
    """A log must have the end of every call that it has the beginning of. Seen to fail with a plain
    finally.
    """
    ended: list[bool] = []

    async def never(connection: Connection) -> None:
        await connection.gone()

    def answer(connection: Connection, _: Request) -> None:
        connection.run(never(connection), lambda task: ended.append(task.cancelled()))
        for task in server.tasks:
            task.cancel()

    async with HttpServer(answer) as server, connected(server, GET):
        await eventually_async(lambda: ended, PATIENCE_SECONDS)
    assert ended == [True]


async def test_a_mistake_of_the_fake_is_told_to_the_event_loop() -> None:
    """And its connection ends; a client that leaves is no mistake."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def fail() -> None:
        raise ZeroDivisionError

    async with HttpServer(lambda connection, _: connection.run(fail())) as server, connected(server, GET) as client:
        assert await client.rest() == b""
    assert [type(context["exception"]) for context in told] == [ZeroDivisionError]


async def test_stop_ends_tasks_and_connections_and_the_port_is_free() -> None:
    """A fake that comes back listens where it was."""
    server = HttpServer(lambda connection, _: connection.run(connection.gone()))
    port = await server.listen()
    async with connected(server, GET) as busy, connected(server) as idle:
        await asyncio.sleep(0.05)
        await server.stop()
        assert (await busy.rest(), await idle.rest(), server.tasks) == (b"", b"", set())
    assert await server.listen(port) == port
    await server.stop()


async def test_one_connection_too_many_is_closed_at_once() -> None:
    """The others stay."""

    def answer(connection: Connection, _: Request) -> None:
        connection.write(answered(b"yes"))

    async with HttpServer(answer, connections_max=1) as server, connected(server) as first:
        await asyncio.sleep(0.05)
        async with connected(server) as second:
            assert await second.rest() == b""
        first.writer.write(GET)
        assert await first.reader.readexactly(len(answered(b"yes"))) == answered(b"yes")


def test_an_address_names_its_scheme() -> None:
    """https where there is a certificate."""
    answer: Callable[[Connection, Request], None] = lambda _, __: None  # noqa: E731 - it is never called
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert (HttpServer(answer).url, HttpServer(answer, tls=tls).url) == ("http://127.0.0.1:0", "https://127.0.0.1:0")


def test_what_is_shipped_needs_no_pytest() -> None:
    """The demo and the simulator stand on this server.

    The test kit's plugin is not on their way.
    """
    code = (
        "import sys, livewell.apps.market.demo.run, livewell.apps.market.simulator.respond, livewell.apps.tour.tour\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('pytest', '_pytest', 'hypothesis')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
