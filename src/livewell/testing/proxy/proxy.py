"""The proxy: a listening port, the connections behind it, and the verbs that break them."""

import asyncio
import socket
from dataclasses import replace
from typing import Literal, Self

from livewell.testing.proxy.faults import Faults, Policy, ProxyCounts, ProxyError, Verb
from livewell.testing.proxy.flow import READ_BYTES_MAX, Flow, Link, Piece, prepared, ready

__all__ = ["TcpProxy"]

DIAL_SECONDS_MAX = 10.0
BACKLOG = 128


class TcpProxy:
    """One target, one listening port, and verbs for what goes wrong between them.

    Lives in the event loop that entered it; call the verbs from there. For synchronous code, or
    when the test's loop is itself busy, use ThreadedProxy.
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
        self._faults = Faults()
        self._answer_bytes: int | None = None
        self._resets_left: int | None = None
        self._connections = 0
        self._bytes_up = 0
        self._bytes_down = 0
        self._links: set[Link] = set()
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
        fired = dict(self._faults.fired)
        return ProxyCounts(self._connections, len(self._links), self._bytes_up, self._bytes_down, fired)

    async def until_fired(self, verb: Verb, *, times: int = 1, timeout: float = 10.0) -> None:
        """Wait until a verb has struck so many times since the start; raise ProxyError when it does
        not.
        """
        if not await self._faults.until_fired(verb, times=times, timeout=timeout):
            struck = self._faults.fired[verb]
            msg = f"{verb} struck {struck} of {times} times in {timeout} s: this fault did not fire. {self.counts}"
            raise ProxyError(msg)

    # ── verbs that hold bytes up ──

    def heal(self) -> None:
        """Back to normal: no delay, no throttle, thawed, listening, resets disarmed; bytes held up
        leave at once.
        """
        self._answer_bytes = self._resets_left = None
        for link in self._links:
            link.answer_bytes_left = None
        self._faults.set_policy(Policy())
        self.accept()

    def pass_(self) -> None:
        """Pass everything, as heal does (the name of the fault plan)."""
        self.heal()

    def delay(self, seconds: float) -> None:
        """Hold every byte for so long, each way; order is kept and pieces overlap: a long cable,
        not a slow one.
        """
        self._faults.set_policy(replace(self._faults.policy, delay_seconds=seconds))

    def throttle(self, bytes_per_second: int) -> None:
        """Let each direction of each connection carry no more than this."""
        if bytes_per_second < 1:
            msg = f"throttle({bytes_per_second}): at least 1 byte per second; to stop everything use freeze()"
            raise ValueError(msg)
        self._faults.set_policy(replace(self._faults.policy, bytes_per_second=bytes_per_second))

    def freeze(self) -> None:
        """Half-open: sockets stay open, newcomers connect, no byte, end or reset passes in either
        direction.
        """
        self._faults.set_policy(replace(self._faults.policy, frozen=True))

    def thaw(self) -> None:
        """Undo freeze; what was held up is delivered."""
        self._faults.set_policy(replace(self._faults.policy, frozen=False))

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
        """RST each connection, live or new, once n further bytes of the server's answer have
        passed, until heal().

        With 0 the request is served and its whole answer is lost: the unknown commit. resets_max=1
        lets the client's retry succeed.
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
        # Bound but not listening: refuses like a dead server, and keeps the port from everyone
        # else.
        self._socket = self._bind()
        self._faults.fire("refuse")

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
        self._connections += 1
        link = Link(prepared(client), self._answer_bytes)
        self._links.add(link)
        link.task = asyncio.create_task(self._serve(link))
        link.task.add_done_callback(lambda task: self._forget(link, task))
        self._watch_listener()

    def _forget(self, link: Link, task: asyncio.Task[None]) -> None:
        link.close(how="fin")
        self._links.discard(link)
        crash = None if task.cancelled() else task.exception()
        if crash is not None:
            self._crashes.append(crash)
        self._watch_listener()

    # ── serving ──

    async def _serve(self, link: Link) -> None:
        await self._faults.hold(arrived=None)
        try:
            link.target = await self._dial()
        except OSError:
            link.close(how="rst")
            return
        up = Flow(link.client, link.target, buffer_bytes_max=self._buffer_bytes_max)
        down = Flow(link.target, link.client, buffer_bytes_max=self._buffer_bytes_max)
        async with asyncio.TaskGroup() as group:
            for flow in (up, down):
                group.create_task(self._read(flow))
                group.create_task(self._deliver(link, flow, is_answer=flow is down))

    async def _dial(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        failure = OSError(f"{self._target}: no address")
        async with asyncio.timeout(DIAL_SECONDS_MAX):
            for family, kind, protocol, _, address in await loop.getaddrinfo(*self._target, type=socket.SOCK_STREAM):
                sock = prepared(socket.socket(family, kind, protocol))
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

    async def _read(self, flow: Flow) -> None:
        """Fill the buffer until the stream ends, one way or the other."""
        while True:
            room = await flow.room()
            data: bytes | None
            try:
                data = flow.source.recv(min(room, READ_BYTES_MAX))
            except BlockingIOError:
                await ready(flow.source, "read")
                continue
            except OSError:
                data = None
            flow.put(Piece(asyncio.get_running_loop().time(), data))
            if not data:
                return

    async def _deliver(self, link: Link, flow: Flow, *, is_answer: bool) -> None:
        """Empty the buffer into the target, when and as far as the policy allows."""
        while True:
            piece = await flow.first()
            await self._faults.hold(arrived=piece.arrived)
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

    async def _send(self, link: Link, flow: Flow, piece: Piece, *, is_answer: bool) -> None:
        rest = memoryview(piece.data or b"")
        while rest:
            size = await self._faults.may_send(flow, piece, len(rest))
            if is_answer and link.answer_bytes_left is not None:
                size = min(size, link.answer_bytes_left)
            try:
                sent = flow.target.send(rest[:size]) if size else 0
            except BlockingIOError:
                await ready(flow.target, "write")
                continue  # a verb may have come while we waited
            rest = rest[sent:]
            if is_answer:
                self._bytes_down += sent
                self._count_answer(link, sent)
            else:
                self._bytes_up += sent

    def _count_answer(self, link: Link, sent: int) -> None:
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

    def _break(self, link: Link, verb: Literal["cut", "reset", "reset_after"]) -> None:
        if not link.closed:
            link.close(how="fin" if verb == "cut" else "rst")
            self._faults.fire(verb)
