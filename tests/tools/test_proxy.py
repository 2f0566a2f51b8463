"""Every verb of the TCP proxy, against a small echo server.

Clients are raw sockets, so that FIN and RST are told apart.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import uvloop

from livewell.testing.processes import free_port
from livewell.testing.proxy import ProxyError, TcpProxy, ThreadedProxy

PATIENCE_SECONDS = 10.0


@dataclass
class Echo:
    """A server that sends back what it gets, and remembers how its connections ended."""

    port: int = 0
    received: bytearray = field(default_factory=bytearray)
    ends: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                self.received += data
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            self.ends.put_nowait("rst")
        else:
            self.ends.put_nowait("fin")
        finally:
            writer.close()


@asynccontextmanager
async def echo_server() -> AsyncIterator[Echo]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.port = server.sockets[0].getsockname()[1]
    try:
        yield echo
    finally:
        server.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    async with echo_server() as server:
        yield server


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[TcpProxy]:
    async with TcpProxy("127.0.0.1", echo.port) as running:
        yield running


@dataclass
class Client:
    sock: socket.socket

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def receive(self, size: int = 65_536) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await asyncio.get_running_loop().sock_recv(self.sock, size)

    async def receive_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = await self.receive(size - len(data))
            assert piece, f"the stream ended after {len(data)} of {size} bytes"
            data += piece
        return data

    async def ask(self, data: bytes) -> bytes:
        await self.send(data)
        return await self.receive_exactly(len(data))

    def hears_nothing(self) -> bool:
        """Whether neither bytes nor an end have come so far."""
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        return False


Connect = Callable[[int], Awaitable[Client]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    clients: list[Client] = []

    async def connected(port: int) -> Client:
        sock = socket.socket()
        sock.setblocking(False)
        clients.append(Client(sock))
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        return clients[-1]

    yield connected
    for client in clients:
        client.sock.close()


async def test_bytes_pass_unchanged_both_ways_and_are_counted(proxy: TcpProxy, connect: Connect) -> None:
    """A megabyte, larger than any buffer on the way but one, comes back as it went."""
    client = await connect(proxy.port)
    data = bytes(range(256)) * 8_192
    sending = asyncio.create_task(client.send(data))
    assert await client.receive_exactly(len(data)) == data
    await sending
    counts = proxy.counts
    assert (counts.connections, counts.live, counts.bytes_up, counts.bytes_down) == (1, 1, len(data), len(data))
    assert counts.fired == {}


async def test_the_end_of_one_direction_leaves_the_other_open(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """A half-close is passed on as such: the answer still arrives, then the server's own end."""
    client = await connect(proxy.port)
    await client.send(b"last words")
    client.sock.shutdown(socket.SHUT_WR)
    assert await client.receive_exactly(10) == b"last words"
    assert await client.receive() == b""
    assert await echo.ends.get() == "fin"


async def test_a_dead_target_is_a_reset(connect: Connect) -> None:
    """A client of a server that is down gets RST, and the proxy goes on."""
    async with TcpProxy("127.0.0.1", free_port()) as proxy:
        client = await connect(proxy.port)
        with pytest.raises(ConnectionResetError):
            await client.receive()


async def test_a_client_that_resets_is_a_reset_at_the_server(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """RST travels through the proxy as RST, not as a polite end."""
    client = await connect(proxy.port)
    await client.ask(b"hello")
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    client.sock.close()
    assert await asyncio.wait_for(echo.ends.get(), PATIENCE_SECONDS) == "rst"


async def test_delay_holds_each_way_and_keeps_order(proxy: TcpProxy, connect: Connect) -> None:
    """One round trip takes two delays, and what was sent first arrives first."""
    client = await connect(proxy.port)
    proxy.delay(0.1)
    begun = time.monotonic()
    for number in range(50):
        await client.send(b"%03d" % number)
    assert await client.receive_exactly(150) == b"".join(b"%03d" % number for number in range(50))
    assert time.monotonic() - begun >= 0.2
    assert proxy.counts.fired["delay"] >= 2


async def test_delayed_pieces_overlap(proxy: TcpProxy, connect: Connect) -> None:
    """Ten pieces sent apart, each held 0.3 s each way, take one round trip together and not ten."""
    client = await connect(proxy.port)
    proxy.delay(0.3)
    begun = time.monotonic()
    for number in range(10):
        await client.send(b"%d" % number)
        await asyncio.sleep(0.01)  # apart, so that they are pieces of their own
    assert await client.receive_exactly(10) == b"0123456789"
    pieces = proxy.counts.fired["delay"]  # of both ways; on a busy machine some of them come together
    assert pieces >= 4
    assert 0.6 <= time.monotonic() - begun < 0.3 * pieces


async def test_heal_releases_what_a_delay_holds(proxy: TcpProxy, connect: Connect) -> None:
    """Nobody waits out an hour's delay after healing."""
    client = await connect(proxy.port)
    proxy.delay(3_600)
    await client.send(b"hello")
    await proxy.until_fired("delay")
    proxy.heal()
    assert await client.receive_exactly(5) == b"hello"


async def test_throttle_bounds_the_rate(proxy: TcpProxy, connect: Connect) -> None:
    """Four thousand bytes at ten thousand a second take 0.4 s at least."""
    client = await connect(proxy.port)
    proxy.throttle(10_000)
    begun = time.monotonic()
    await client.ask(b"x" * 4_000)
    assert time.monotonic() - begun >= 0.4
    assert proxy.counts.fired["throttle"] >= 2


async def test_throttle_does_not_slow_other_connections(proxy: TcpProxy, connect: Connect) -> None:
    """The rate belongs to a connection.

    One that is stuck in a long transfer does not hold up its neighbour.
    """
    stuck, quick = await connect(proxy.port), await connect(proxy.port)
    proxy.throttle(2_000)
    await stuck.send(b"x" * 100_000)
    await proxy.until_fired("throttle")
    begun = time.monotonic()
    assert await quick.ask(b"hello") == b"hello"
    assert time.monotonic() - begun < 5.0


async def test_pass_lifts_a_throttle_at_once(proxy: TcpProxy, connect: Connect) -> None:
    """A transfer that would have taken a day goes through."""
    client = await connect(proxy.port)
    proxy.throttle(1)
    await client.send(b"x" * 86_400)
    await proxy.until_fired("throttle")
    proxy.pass_()
    assert await client.receive_exactly(86_400) == b"x" * 86_400


async def test_throttle_refuses_a_rate_of_nothing(proxy: TcpProxy) -> None:
    """Zero bytes per second is a freeze, and is to be called so."""
    with pytest.raises(ValueError, match="freeze"):
        proxy.throttle(0)


async def test_cut_ends_every_connection_with_fin(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """Both sides read an orderly end; a new connection works."""
    clients = [await connect(proxy.port), await connect(proxy.port)]
    for client in clients:
        await client.ask(b"hello")
    proxy.cut()
    assert [await client.receive() for client in clients] == [b"", b""]
    assert [await echo.ends.get(), await echo.ends.get()] == ["fin", "fin"]
    assert proxy.counts.fired == {"cut": 2}
    assert await (await connect(proxy.port)).ask(b"again") == b"again"


async def test_cut_is_fin_even_with_unread_bytes(echo: Echo, connect: Connect) -> None:
    """Bytes that a proxy with a full buffer never read do not turn the orderly end into a reset."""
    async with TcpProxy("127.0.0.1", echo.port, buffer_bytes_max=10) as proxy:
        client = await connect(proxy.port)
        await client.ask(b"hello")
        proxy.freeze()
        await client.send(b"never read" * 1_000)
        await proxy.until_fired("freeze")
        proxy.cut()
        assert await client.receive() == b""
        assert client.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0  # EPIPE when RST follows the FIN


async def test_reset_breaks_every_connection_with_rst(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """Both sides get ECONNRESET; a new connection works."""
    client = await connect(proxy.port)
    await client.ask(b"hello")
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        await client.receive()
    assert await echo.ends.get() == "rst"
    assert proxy.counts.fired == {"reset": 1}
    assert await (await connect(proxy.port)).ask(b"again") == b"again"


async def test_reset_after_lets_exactly_n_bytes_of_answer_pass(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """The request arrived whole, the client has the first n bytes of the answer, then the connection is reset."""
    client = await connect(proxy.port)
    await client.ask(b"before the fault")
    proxy.reset_after(3)
    await client.send(b"request")
    assert await client.receive_exactly(3) == b"req"
    with pytest.raises(ConnectionResetError):
        await client.receive()
    assert echo.received == b"before the faultrequest"
    assert proxy.counts.fired == {"reset_after": 1}


async def test_reset_after_nothing_loses_the_whole_answer(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """The server has done the work and the client cannot know: the unknown commit."""
    client = await connect(proxy.port)
    proxy.reset_after(0)
    await client.send(b"COMMIT")
    with pytest.raises(ConnectionResetError):
        await client.receive()
    assert echo.received == b"COMMIT"


async def test_reset_after_strikes_newcomers_until_healed(proxy: TcpProxy, connect: Connect) -> None:
    """It stays armed for connections made later, and heal disarms it."""
    proxy.reset_after(1)
    for _ in range(2):
        client = await connect(proxy.port)
        await client.send(b"hello")
        assert await client.receive_exactly(1) == b"h"
        with pytest.raises(ConnectionResetError):
            await client.receive()
    waiting = await connect(proxy.port)
    proxy.heal()
    assert await waiting.ask(b"hello") == b"hello"
    assert proxy.counts.fired == {"reset_after": 2}


async def test_reset_after_can_be_limited_so_that_the_retry_succeeds(proxy: TcpProxy, connect: Connect) -> None:
    """With resets_max=1 the first answer is broken and every later one is whole."""
    first, other = await connect(proxy.port), await connect(proxy.port)
    await other.ask(b"warm")
    proxy.reset_after(1, resets_max=1)
    await first.send(b"hello")
    await proxy.until_fired("reset_after")
    assert await other.ask(b"hello") == b"hello"
    assert await (await connect(proxy.port)).ask(b"hello") == b"hello"
    assert proxy.counts.fired == {"reset_after": 1}


async def test_freeze_keeps_the_socket_open_and_passes_nothing(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """The client can send and hears neither bytes nor an end; after the thaw everything arrives."""
    client = await connect(proxy.port)
    await client.ask(b"before")
    proxy.freeze()
    await client.send(b"during")
    await proxy.until_fired("freeze")
    assert client.hears_nothing()
    assert echo.received == b"before"
    proxy.thaw()
    assert await client.receive_exactly(6) == b"during"


async def test_freeze_holds_the_answer_too(connect: Connect) -> None:
    """Bytes that the server says by itself do not reach the client."""
    speakers: list[asyncio.StreamWriter] = []
    met = asyncio.Event()

    def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        speakers.append(writer)
        met.set()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    async with server, TcpProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as proxy:
        client = await connect(proxy.port)
        await met.wait()
        proxy.freeze()
        speakers[0].write(b"notification")
        await proxy.until_fired("freeze")
        assert client.hears_nothing()
        proxy.thaw()
        assert await client.receive_exactly(12) == b"notification"
        speakers[0].close()


async def test_freeze_hides_the_death_of_the_client(proxy: TcpProxy, echo: Echo, connect: Connect) -> None:
    """While frozen the server does not learn that its client is gone (half-open).

    After the thaw it does.
    """
    client = await connect(proxy.port)
    await client.ask(b"hello")
    proxy.freeze()
    client.sock.close()
    await proxy.until_fired("freeze")
    assert echo.ends.empty()
    proxy.thaw()
    assert await asyncio.wait_for(echo.ends.get(), PATIENCE_SECONDS) == "fin"


async def test_a_newcomer_at_a_frozen_proxy_connects_and_hears_nothing(
    proxy: TcpProxy, echo: Echo, connect: Connect
) -> None:
    """The kernel completes the handshake, the server is not told.

    After the thaw the newcomer is served.
    """
    proxy.freeze()
    client = await connect(proxy.port)
    await client.send(b"hello")
    await proxy.until_fired("freeze")
    assert client.hears_nothing()
    assert echo.received == b""
    proxy.thaw()
    assert await client.receive_exactly(5) == b"hello"


async def test_a_frozen_buffer_is_bounded(echo: Echo, connect: Connect) -> None:
    """A client that keeps sending into a frozen proxy is stopped by back-pressure, and nothing is lost."""
    async with TcpProxy("127.0.0.1", echo.port, buffer_bytes_max=100_000) as proxy:
        client = await connect(proxy.port)
        proxy.freeze()
        sending = asyncio.create_task(client.send(b"x" * 20_000_000))
        with pytest.raises(TimeoutError):  # no event tells that nothing happens; unbounded, this takes 0.1 s
            await asyncio.wait_for(asyncio.shield(sending), timeout=0.5)
        proxy.thaw()
        assert len(await client.receive_exactly(20_000_000)) == 20_000_000
        await sending


async def test_refuse_refuses_and_accept_comes_back_on_the_same_port(proxy: TcpProxy, connect: Connect) -> None:
    """Newcomers get ECONNREFUSED, the live connection goes on, and the port is kept."""
    client = await connect(proxy.port)
    await client.ask(b"hello")
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await connect(proxy.port)
    assert await client.ask(b"still here") == b"still here"
    proxy.accept()
    assert await (await connect(proxy.port)).ask(b"back") == b"back"
    assert proxy.counts.fired == {"refuse": 1}


async def test_heal_undoes_everything_at_once(proxy: TcpProxy, connect: Connect) -> None:
    """After any mixture of verbs, heal alone brings a working proxy back."""
    proxy.delay(3_600)
    proxy.throttle(1)
    proxy.freeze()
    proxy.reset_after(0)
    proxy.refuse()
    proxy.heal()
    assert await (await connect(proxy.port)).ask(b"hello") == b"hello"


async def test_connections_beyond_the_bound_wait_in_the_backlog(echo: Echo, connect: Connect) -> None:
    """With room for one, the second is served when the first leaves."""
    async with TcpProxy("127.0.0.1", echo.port, connections_max=1) as proxy:
        first, second = await connect(proxy.port), await connect(proxy.port)
        await second.send(b"second")
        assert await first.ask(b"first") == b"first"
        assert proxy.counts.connections == 1
        first.sock.close()
        assert await second.receive_exactly(6) == b"second"


async def test_a_fault_that_never_fired_is_an_error(proxy: TcpProxy) -> None:
    """until_fired names the verb and what was counted."""
    with pytest.raises(ProxyError, match="cut struck 0 of 1 times"):
        await proxy.until_fired("cut", timeout=0.01)


async def test_leaving_the_proxy_ends_its_connections(echo: Echo, connect: Connect) -> None:
    """After the block nothing listens and nobody is left hanging."""
    async with TcpProxy("127.0.0.1", echo.port) as proxy:
        client = await connect(proxy.port)
        await client.ask(b"hello")
    assert await client.receive() == b""
    with pytest.raises(ConnectionRefusedError):
        await connect(proxy.port)


async def test_a_threaded_proxy_serves_while_this_loop_is_blocked(echo: Echo) -> None:
    """Blocking code in the test's thread talks through the proxy, which has a loop of its own."""

    def talk(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as sock:
            sock.sendall(b"hello")
            return sock.recv(5)

    with ThreadedProxy("127.0.0.1", echo.port) as outer, ThreadedProxy("127.0.0.1", outer.port) as proxy:
        assert await asyncio.to_thread(talk, proxy.port) == b"hello"
        proxy.refuse()
        # From this very thread, which the echo server needs too: only the proxy's own thread can
        # answer.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_SECONDS)
        assert proxy.counts.bytes_down == 5


def test_a_threaded_proxy_has_every_verb_of_the_other() -> None:
    """The two cannot drift apart."""
    verbs = {name for name in vars(TcpProxy) if not name.startswith("_")}
    assert verbs == {name for name in vars(ThreadedProxy) if not name.startswith("_")} - {"host", "port"}


def test_a_threaded_proxy_breaks_connections_of_synchronous_code() -> None:
    """Each verb is in force when it returns, without any loop in sight."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        ThreadedProxy("127.0.0.1", server.getsockname()[1]) as proxy,
    ):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_SECONDS) as client:
            accepted, _ = server.accept()
            with accepted:
                proxy.freeze()
                client.sendall(b"x")
                proxy.until_fired("freeze")
                proxy.thaw()
                assert accepted.recv(1) == b"x"
                proxy.delay(0.0)
                proxy.throttle(1_000_000)
                proxy.pass_()
                proxy.reset_after(1)
                accepted.sendall(b"yz")
                proxy.until_fired("reset_after")
                assert client.recv(2) == b"y"
                with pytest.raises(ConnectionResetError):
                    client.recv(1)
        proxy.refuse()
        proxy.accept()
        proxy.cut()
        proxy.reset()
        proxy.heal()
        assert proxy.counts.fired["reset_after"] == 1


def test_the_verbs_work_on_uvloop_too() -> None:
    """The workers' loop is uvloop; a proxy in the same loop must not mind."""

    async def scenario() -> None:
        async with echo_server() as echo, TcpProxy("127.0.0.1", echo.port) as proxy:
            loop = asyncio.get_running_loop()
            for verb, end in ((proxy.cut, "fin"), (proxy.reset, "rst")):
                with socket.socket() as sock:
                    sock.setblocking(False)
                    await loop.sock_connect(sock, ("127.0.0.1", proxy.port))
                    proxy.freeze()
                    await loop.sock_sendall(sock, b"hello")
                    proxy.thaw()
                    assert await loop.sock_recv(sock, 5) == b"hello"
                    verb()
                    assert await asyncio.wait_for(echo.ends.get(), PATIENCE_SECONDS) == end
            proxy.refuse()
            proxy.accept()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
