"""The proxy for synchronous code, and for tests whose own event loop is busy."""

import asyncio
import threading
from collections.abc import Callable
from typing import Self, TypeVar

from livewell.testing.proxy.faults import ProxyCounts, ProxyError, Verb
from livewell.testing.proxy.proxy import TcpProxy

__all__ = ["ThreadedProxy"]

T = TypeVar("T")


class ThreadedProxy:
    """A TcpProxy in a thread and loop of its own, with the same verbs.

    It is for synchronous code and for busy loops.
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
        self._proxy = TcpProxy(
            target_host, target_port, host=host, buffer_bytes_max=buffer_bytes_max, connections_max=connections_max
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="livewell-proxy", daemon=True)

    def _run(self) -> None:
        # The selector loop by name: the proxy must not depend on the loop policy of the code under
        # test.
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
        """Block until a verb has struck so many times since the start; raise ProxyError when it
        does not.
        """
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
