"""A TCP proxy with a bad temper: stand it in front of Postgres (or any server) and choose what goes wrong.

    client ◀──▶ proxy.port ══ flow up ═══▶ target
                           ◀═ flow down ══

    heal ──delay, throttle, freeze──▶ held up     ──heal (freeze: also thaw)──▶ heal
    heal ──cut, reset, reset_after──▶ broken      (the client has to connect again)
    heal ──refuse──▶ nobody listens               ──accept, heal──▶ heal

Each direction of each connection is a reader, a bounded buffer and a deliverer. End of stream and reset travel through
the same buffer as the bytes, so a frozen proxy hides the death of a peer exactly as a half-open network does (T11). A
verb is a plain method and is in force when it returns; what it did is counted when it strikes, not when it is called,
so that a test can demand that its fault fired.
"""

import asyncio
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeVar

from livewell.errors import LivewellError

__all__ = ["ProxyCounts", "ProxyError", "TcpProxy", "ThreadedProxy", "Verb"]

Verb = Literal["cut", "delay", "freeze", "refuse", "reset", "reset_after", "throttle"]
T = TypeVar("T")

READ_BYTES_MAX = 65_536
DIAL_SECONDS_MAX = 10.0
BACKLOG = 128
THROTTLE_SLICES_PER_SECOND = 20  # a throttled flow moves every 50 ms: smooth enough, and still cheap
LINGER_ZERO = struct.pack("ii", 1, 0)  # close() then sends RST instead of FIN


class ProxyError(LivewellError):
    """The proxy was used when it was not running, or the fault that a test waited for never struck."""


@dataclass(frozen=True, slots=True)
class ProxyCounts:
    """What passed and what went wrong so far.

    fired: connections broken (cut, reset, reset_after), pieces held up (delay, throttle, freeze; a newcomer held by a
    freeze counts too), times the proxy stopped listening (refuse: the kernel refuses for us, unseen).
    """

    connections: int
    live: int
    bytes_up: int
    bytes_down: int
    fired: dict[Verb, int]


@dataclass(frozen=True, slots=True)
class _Policy:
    """What happens to bytes at this moment."""

    delay_seconds: float = 0.0
    bytes_per_second: int | None = None
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes on their way; b"" is the end of the stream, None a reset."""

    arrived: float
    data: bytes | None


class _Flow:
    """One direction of one connection: source, bounded buffer, target."""

    def __init__(self, source: socket.socket, target: socket.socket, *, buffer_bytes_max: int) -> None:
        self.source = source
        self.target = target
        self.free_at = 0.0  # when a throttled link has finished sending what it took
        self._pieces: deque[_Piece] = deque()
        self._room = buffer_bytes_max
        self._changed = asyncio.Event()

    async def room(self) -> int:
        """Wait until there is room, and say how many bytes."""
        while self._room <= 0:
            self._changed.clear()
            await self._changed.wait()
        return self._room

    async def first(self) -> _Piece:
        """Wait for the oldest piece; it keeps its room until dropped."""
        while not self._pieces:
            self._changed.clear()
            await self._changed.wait()
        return self._pieces[0]

    def put(self, piece: _Piece) -> None:
        self._pieces.append(piece)
        self._room -= len(piece.data or b"")
        self._changed.set()

    def drop_first(self) -> None:
        self._room += len(self._pieces.popleft().data or b"")
        self._changed.set()


@dataclass(eq=False, slots=True)
class _Link:
    """One client's connection and, once dialled, its twin at the target."""

    client: socket.socket
    answer_bytes_left: int | None  # reset_after: the server's bytes that may still pass
    target: socket.socket | None = None
    task: asyncio.Task[None] | None = None
    closed: bool = False

    def close(self, *, how: Literal["fin", "rst"]) -> None:
        """Close both sockets now, and end the task that served them."""
        if self.closed:
            return
        self.closed = True
        loop = asyncio.get_running_loop()
        for sock in (self.client, self.target):
            if sock is not None:
                loop.remove_reader(sock)
                loop.remove_writer(sock)
                _close(sock, how=how)
        if self.task is not None:
            self.task.cancel()


@dataclass(slots=True)
class _Tally:
    """The running counts."""

    connections: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    fired: Counter[Verb] = field(default_factory=Counter)


class TcpProxy:
    """One target, one listening port, and verbs for what goes wrong between them.

    Lives in the event loop that entered it; call the verbs from there. For synchronous code, or when the test's loop is
    itself busy, use ThreadedProxy.
    """

    def __init__(
        self,
        target_host: str,
        target_port: int,
        *,
        host: str = "127.0.0.1",
        buffer_bytes_max: int = 1_048_576,
        connections_max: int = 256,
    ) -> None:
        self.host = host
        self.port = 0
        self._target = (target_host, target_port)
        self._buffer_bytes_max = buffer_bytes_max
        self._connections_max = connections_max
        self._policy = _Policy()
        self._policy_changed = asyncio.Event()
        self._noticed = asyncio.Event()
        self._answer_bytes: int | None = None
        self._resets_left: int | None = None
        self._tally = _Tally()
        self._links: set[_Link] = set()
        self._crashes: list[BaseException] = []
        self._socket: socket.socket | None = None
        self._listening = False

    async def __aenter__(self) -> Self:
        self._socket = self._bind()
        self.port = self._socket.getsockname()[1]
        self._listen()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._stop_listening()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        tasks = [link.task for link in self._links if link.task is not None]
        for link in list(self._links):
            link.close(how="fin")
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._crashes and exc_info[0] is None:
            raise self._crashes[0]

    @property
    def counts(self) -> ProxyCounts:
        """A snapshot of what passed and which faults struck."""
        tally = self._tally
        return ProxyCounts(tally.connections, len(self._links), tally.bytes_up, tally.bytes_down, dict(tally.fired))

    async def until_fired(self, verb: Verb, *, times: int = 1, timeout: float = 10.0) -> None:
        """Wait until a verb has struck so many times since the start; raise ProxyError when it does not."""
        try:
            async with asyncio.timeout(timeout):
                while self._tally.fired[verb] < times:
                    await self._noticed.wait()
        except TimeoutError:
            struck = self._tally.fired[verb]
            msg = f"{verb} struck {struck} of {times} times in {timeout} s: this fault did not fire. {self.counts}"
            raise ProxyError(msg) from None

    # ── verbs that hold bytes up ──

    def heal(self) -> None:
        """Back to normal: no delay, no throttle, thawed, listening, resets disarmed; bytes held up leave at once."""
        self._answer_bytes = self._resets_left = None
        for link in self._links:
            link.answer_bytes_left = None
        self._set_policy(_Policy())
        self.accept()

    def pass_(self) -> None:
        """Pass everything, as heal does (the name of the fault plan)."""
        self.heal()

    def delay(self, seconds: float) -> None:
        """Hold every byte for so long, each way; order is kept and pieces overlap: a long cable, not a slow one."""
        self._set_policy(replace(self._policy, delay_seconds=seconds))

    def throttle(self, bytes_per_second: int) -> None:
        """Let each direction of each connection carry no more than this."""
        if bytes_per_second < 1:
            msg = f"throttle({bytes_per_second}): at least 1 byte per second; to stop everything use freeze()"
            raise ValueError(msg)
        self._set_policy(replace(self._policy, bytes_per_second=bytes_per_second))

    def freeze(self) -> None:
        """Half-open: sockets stay open, newcomers connect, no byte, end or reset passes in either direction."""
        self._set_policy(replace(self._policy, frozen=True))

    def thaw(self) -> None:
        """Undo freeze; what was held up is delivered."""
        self._set_policy(replace(self._policy, frozen=False))

    # ── verbs that break connections ──

    def cut(self) -> None:
        """Close every live connection with FIN on both sides; bytes held up are lost."""
        for link in list(self._links):
            self._break(link, "cut")

    def reset(self) -> None:
        """Close every live connection with RST on both sides; bytes held up are lost."""
        for link in list(self._links):
            self._break(link, "reset")

    def reset_after(self, n_bytes: int, *, resets_max: int | None = None) -> None:
        """RST each connection, live or new, once n further bytes of the server's answer have passed, until heal().

        With 0 the request is served and its whole answer is lost: the unknown commit. resets_max=1 lets the client's
        retry succeed.
        """
        if n_bytes < 0:
            msg = f"reset_after({n_bytes}): the number of bytes cannot be negative"
            raise ValueError(msg)
        self._answer_bytes, self._resets_left = n_bytes, resets_max
        for link in self._links:
            link.answer_bytes_left = n_bytes

    def refuse(self) -> None:
        """Stop listening: new connections are refused by the kernel, live ones go on."""
        if not self._listening:
            return
        self._stop_listening()
        self._running_socket().close()
        # Bound but not listening: refuses like a dead server, and keeps the port from everyone else.
        self._socket = self._bind()
        self._fire("refuse")

    def accept(self) -> None:
        """Undo refuse, on the same port."""
        if not self._listening:
            self._listen()

    # ── listening ──

    def _running_socket(self) -> socket.socket:
        if self._socket is None:
            msg = "the proxy is not running: use it inside `async with TcpProxy(host, port) as proxy:`"
            raise ProxyError(msg)
        return self._socket

    def _bind(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.host, self.port))
        return sock

    def _listen(self) -> None:
        sock = self._running_socket()
        sock.listen(BACKLOG)
        self._listening = True
        self._watch_listener()

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            asyncio.get_running_loop().remove_reader(self._running_socket())

    def _watch_listener(self) -> None:
        """Take newcomers while there is room; the rest wait in the kernel's backlog."""
        if not self._listening:
            return
        loop, sock = asyncio.get_running_loop(), self._running_socket()
        if len(self._links) < self._connections_max:
            loop.add_reader(sock, self._take_newcomer)
        else:
            loop.remove_reader(sock)

    def _take_newcomer(self) -> None:
        try:
            client, _ = self._running_socket().accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it gave up before we came
        self._tally.connections += 1
        link = _Link(_prepared(client), self._answer_bytes)
        self._links.add(link)
        link.task = asyncio.create_task(self._serve(link))
        link.task.add_done_callback(lambda task: self._forget(link, task))
        self._watch_listener()

    def _forget(self, link: _Link, task: asyncio.Task[None]) -> None:
        link.close(how="fin")
        self._links.discard(link)
        crash = None if task.cancelled() else task.exception()
        if crash is not None:
            self._crashes.append(crash)
        self._watch_listener()

    # ── serving ──

    async def _serve(self, link: _Link) -> None:
        await self._hold(arrived=None)
        try:
            link.target = await self._dial()
        except OSError:
            link.close(how="rst")
            return
        up = _Flow(link.client, link.target, buffer_bytes_max=self._buffer_bytes_max)
        down = _Flow(link.target, link.client, buffer_bytes_max=self._buffer_bytes_max)
        async with asyncio.TaskGroup() as group:
            for flow in (up, down):
                group.create_task(self._read(flow))
                group.create_task(self._deliver(link, flow, is_answer=flow is down))

    async def _dial(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        failure = OSError(f"{self._target}: no address")
        async with asyncio.timeout(DIAL_SECONDS_MAX):
            for family, kind, protocol, _, address in await loop.getaddrinfo(*self._target, type=socket.SOCK_STREAM):
                sock = _prepared(socket.socket(family, kind, protocol))
                try:
                    await loop.sock_connect(sock, address)
                except OSError as error:
                    sock.close()
                    failure = error
                except asyncio.CancelledError:
                    sock.close()
                    raise
                else:
                    return sock
        raise failure

    async def _read(self, flow: _Flow) -> None:
        """Fill the buffer until the stream ends, one way or the other."""
        while True:
            room = await flow.room()
            data: bytes | None
            try:
                data = flow.source.recv(min(room, READ_BYTES_MAX))
            except BlockingIOError:
                await _ready(flow.source, "read")
                continue
            except OSError:
                data = None
            flow.put(_Piece(asyncio.get_running_loop().time(), data))
            if not data:
                return

    async def _deliver(self, link: _Link, flow: _Flow, *, is_answer: bool) -> None:
        """Empty the buffer into the target, when and as far as the policy allows."""
        while True:
            piece = await flow.first()
            await self._hold(arrived=piece.arrived)
            try:
                if piece.data is None:
                    link.close(how="rst")
                    return
                if not piece.data:
                    flow.target.shutdown(socket.SHUT_WR)
                    return
                await self._send(link, flow, piece, is_answer=is_answer)
            except OSError:  # the target is gone: its peer learns it the same way
                link.close(how="rst")
                return
            flow.drop_first()

    async def _send(self, link: _Link, flow: _Flow, piece: _Piece, *, is_answer: bool) -> None:
        rest = memoryview(piece.data or b"")
        while rest:
            size = await self._may_send(flow, piece, len(rest))
            if is_answer and link.answer_bytes_left is not None:
                size = min(size, link.answer_bytes_left)
            try:
                sent = flow.target.send(rest[:size]) if size else 0
            except BlockingIOError:
                await _ready(flow.target, "write")
                continue  # a verb may have come while we waited
            rest = rest[sent:]
            if is_answer:
                self._tally.bytes_down += sent
                self._count_answer(link, sent)
            else:
                self._tally.bytes_up += sent

    def _count_answer(self, link: _Link, sent: int) -> None:
        """Fire reset_after when its bytes have passed."""
        if link.answer_bytes_left is None:
            return
        link.answer_bytes_left -= sent
        if link.answer_bytes_left > 0:
            return
        link.answer_bytes_left = None
        if self._resets_left is not None:
            self._resets_left -= 1
            if self._resets_left <= 0:
                self._answer_bytes = None
                for other in self._links:
                    other.answer_bytes_left = None
        self._break(link, "reset_after")
        raise ConnectionResetError

    # ── policy ──

    def _set_policy(self, policy: _Policy) -> None:
        self._policy = policy
        self._policy_changed.set()
        self._policy_changed = asyncio.Event()

    def _break(self, link: _Link, verb: Literal["cut", "reset", "reset_after"]) -> None:
        if not link.closed:
            link.close(how="fin" if verb == "cut" else "rst")
            self._fire(verb)

    def _fire(self, verb: Verb) -> None:
        self._tally.fired[verb] += 1
        self._noticed.set()
        self._noticed = asyncio.Event()

    async def _hold(self, *, arrived: float | None) -> None:
        """Wait until a piece that arrived then may leave: thawed, delay over. A newcomer (None) waits to thaw."""
        counted: set[Verb] = set()
        while True:
            policy, now = self._policy, asyncio.get_running_loop().time()
            wait_seconds = 0.0 if arrived is None else arrived + policy.delay_seconds - now
            if not policy.frozen and wait_seconds <= 0:
                return
            verb: Verb = "freeze" if policy.frozen else "delay"
            if verb not in counted:
                counted.add(verb)
                self._fire(verb)
            await self._pause(None if policy.frozen else wait_seconds)

    async def _may_send(self, flow: _Flow, piece: _Piece, wanted: int) -> int:
        """Wait for the policy's leave to send; answer how many bytes."""
        while True:
            await self._hold(arrived=piece.arrived)
            rate = self._policy.bytes_per_second
            if rate is None:
                return wanted
            size = min(wanted, max(1, rate // THROTTLE_SLICES_PER_SECOND))
            now = asyncio.get_running_loop().time()
            free_at = max(flow.free_at, now) + size / rate
            self._fire("throttle")
            if not await self._pause(free_at - now):
                flow.free_at = free_at
                return size

    async def _pause(self, seconds: float | None) -> bool:
        """Wait so long, or until a verb changes the policy; True when it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._policy_changed.wait()
        except TimeoutError:
            return False
        return True


class ThreadedProxy:
    """A TcpProxy in a thread and loop of its own, with the same verbs: for synchronous code and for busy loops."""

    def __init__(
        self,
        target_host: str,
        target_port: int,
        *,
        host: str = "127.0.0.1",
        buffer_bytes_max: int = 1_048_576,
        connections_max: int = 256,
    ) -> None:
        self._proxy = TcpProxy(
            target_host, target_port, host=host, buffer_bytes_max=buffer_bytes_max, connections_max=connections_max
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="livewell-proxy", daemon=True)

    def _run(self) -> None:
        # The selector loop by name: the proxy must not depend on the loop policy of the code under test.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started.set()
        await self._stop.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait(timeout=10)
        try:
            asyncio.run_coroutine_threadsafe(self._proxy.__aenter__(), self._running_loop()).result(timeout=10)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._proxy.__aexit__(*exc_info), self._running_loop()).result(timeout=10)
        finally:
            self._end()

    def _end(self) -> None:
        self._running_loop().call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10)
        self._loop = None

    @property
    def host(self) -> str:
        """Where it listens."""
        return self._proxy.host

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._proxy.port

    @property
    def counts(self) -> ProxyCounts:
        """A snapshot of what passed and which faults struck."""
        return self._call(lambda: self._proxy.counts)

    def until_fired(self, verb: Verb, *, times: int = 1, timeout: float = 10.0) -> None:
        """Block until a verb has struck so many times since the start; raise ProxyError when it does not."""
        waiting = self._proxy.until_fired(verb, times=times, timeout=timeout)
        asyncio.run_coroutine_threadsafe(waiting, self._running_loop()).result(timeout=timeout + 10)

    def heal(self) -> None:
        """Back to normal."""
        self._call(self._proxy.heal)

    def pass_(self) -> None:
        """Pass everything, as heal does."""
        self._call(self._proxy.pass_)

    def delay(self, seconds: float) -> None:
        """Hold every byte for so long, each way."""
        self._call(lambda: self._proxy.delay(seconds))

    def throttle(self, bytes_per_second: int) -> None:
        """Let each direction of each connection carry no more than this."""
        self._call(lambda: self._proxy.throttle(bytes_per_second))

    def freeze(self) -> None:
        """Half-open: sockets stay open, nothing passes."""
        self._call(self._proxy.freeze)

    def thaw(self) -> None:
        """Undo freeze; what was held up is delivered."""
        self._call(self._proxy.thaw)

    def cut(self) -> None:
        """Close every live connection with FIN."""
        self._call(self._proxy.cut)

    def reset(self) -> None:
        """Close every live connection with RST."""
        self._call(self._proxy.reset)

    def reset_after(self, n_bytes: int, *, resets_max: int | None = None) -> None:
        """RST each connection once n further bytes of the server's answer have passed."""
        self._call(lambda: self._proxy.reset_after(n_bytes, resets_max=resets_max))

    def refuse(self) -> None:
        """Stop listening: new connections are refused."""
        self._call(self._proxy.refuse)

    def accept(self) -> None:
        """Undo refuse, on the same port."""
        self._call(self._proxy.accept)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            msg = "the proxy is not running: use it inside `with ThreadedProxy(host, port) as proxy:`"
            raise ProxyError(msg)
        return self._loop

    def _call(self, verb: Callable[[], T]) -> T:
        """Run a verb in the proxy's loop and wait until it is in force."""

        async def call() -> T:
            return verb()

        return asyncio.run_coroutine_threadsafe(call(), self._running_loop()).result(timeout=10)


def _prepared(sock: socket.socket) -> socket.socket:
    sock.settimeout(0)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


async def _ready(sock: socket.socket, to: Literal["read", "write"]) -> None:
    """Wait until a socket can be read or written."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_reader, loop.remove_reader) if to == "read" else (loop.add_writer, loop.remove_writer)

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    add(sock, wake)
    try:
        await ready
    finally:
        if sock.fileno() >= 0:  # a verb that closed it has removed it already
            remove(sock)


def _close(sock: socket.socket, *, how: Literal["fin", "rst"]) -> None:
    try:
        if how == "rst":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        else:
            sock.shutdown(socket.SHUT_WR)
            # Closing with unread bytes would send RST after all, so read them away; bounded, for a peer may never stop.
            for _ in range(256):
                if not sock.recv(READ_BYTES_MAX):
                    break
    except OSError:  # nothing left to read, or the peer was faster
        pass
    finally:
        sock.close()
