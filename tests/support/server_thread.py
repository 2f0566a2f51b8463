"""A server in a thread of the test's process: it serves at once, where a process takes a second to start.

Whatever a test does to the process itself (kill, freeze) needs a real one.
"""

from __future__ import annotations

import asyncio
import threading

from livewell.server.app import gated
from livewell.server.pools import addresses
from livewell.server.process import ServerProcess
from livewell.server.serve import HttpServer, bind
from livewell.settings import Settings
from tests.support.http import application

START_SECONDS = 30.0
END_SECONDS = 15.0


class ServerThread:
    """What `livewell serve` serves, with these environment variables, on this port."""

    def __init__(self, env: dict[str, str], port: int) -> None:
        self._settings = Settings.load(**{name.removeprefix("LIVEWELL_").lower(): env[name] for name in env})
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._server: HttpServer | None = None
        self._error: BaseException | None = None
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    def start(self) -> None:
        """Until it listens."""
        self._thread.start()
        assert self._settled.wait(START_SECONDS), "the server did not start"
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Streams are told, requests end."""
        if self._server is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(END_SECONDS)
        assert not self._thread.is_alive(), "the server did not end"

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that starts it
            self._error = error
        finally:
            self._settled.set()

    async def _serve(self) -> None:
        async with ServerProcess(addresses(self._settings), self._settings) as state:
            server = HttpServer(gated(application(), state), state, bind("127.0.0.1", self._port))
            self._server = server
            self._settled.set()
            await server.run()
