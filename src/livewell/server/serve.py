"""Listen, and serve until told to stop.

bound ──serve──▶ serving ──stop──▶ streams say goodbye, requests may end ──grace──▶ ended

The socket is bound before anything else, so that a port in use is said at once and port 0 is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import cast

import structlog
import uvicorn
from starlette.types import ASGIApp

from livewell.errors import ConfigurationError, LivewellError
from livewell.server.connection.limits import Bounds, Connections
from livewell.server.connection.network import Proxies
from livewell.server.connection.protocol import Protocol
from livewell.server.process import ServerProcess
from livewell.telemetry import measures

_GRACE_SECONDS = 5
_BACKLOG = 2048
_TELL_SECONDS = 60.0
_WARN = "SELECT livewell.warn('gate', %s, %s)"

log = structlog.get_logger("livewell.server")


def bind(host: str, port: int) -> socket.socket:
    """A listening socket."""
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. Choose another with --port, or "
            "LIVEWELL_HTTP_PORT"
        ) from None


def address_of(bound: socket.socket) -> str:
    """http://127.0.0.1:8484"""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Uvicorn(uvicorn.Server):
    """Signals are the command line's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves one application on one socket."""

    def __init__(self, app: ASGIApp, state: ServerProcess, bound: socket.socket) -> None:
        self._state = state
        self._socket = bound
        proxies = list(state.settings.proxies)
        bounds = Bounds.from_settings(state.settings)
        self.connections = Connections(bounds, state.refusals, proxies=Proxies(proxies))
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=cast("type[asyncio.Protocol]", partial(Protocol, connections=self.connections)),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=proxies or None,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    async def run(self) -> None:
        """Until stop() is called, and what was begun has ended or used up its grace."""
        beside = [asyncio.create_task(work) for work in (self.connections.watch(), self._tell())]
        try:
            with self._measured():
                await self._server.serve(sockets=[self._socket])
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    @contextlib.contextmanager
    def _measured(self) -> Iterator[None]:
        """How full it is, while it serves."""
        state, settings, connections = self._state, self._state.settings, self.connections
        with (
            measures.held("connections", lambda: len(connections), connections.bounds.connections),
            measures.held("streams", lambda: state.streams.count, settings.streams_max),
            measures.held("keys", lambda: state.reads.hub.followed, settings.watched_keys_max),
        ):
            yield

    async def _tell(self) -> None:
        """Once a minute: what was refused.

        In the log with the worst address, as rows for doctor without.
        """
        while True:
            await asyncio.sleep(_TELL_SECONDS)
            for told in self._state.refusals.tell():
                sample = f"{told.n} in a minute, {told.n_worst} of them from one address"
                try:
                    await self._state.pools.hub.call(_WARN, (told.kind, sample))
                except LivewellError as error:
                    log.warning("could not count what was refused", kind=told.kind, error=str(error))

    def stop(self) -> None:
        """Take no more; streams are told, and requests may end. A second time: at once."""
        self._server.force_exit = self._state.stopping.is_set()
        self._state.stopping.set()
        self._server.should_exit = True
