"""Listen, and serve until told to stop.

bound ──serve──▶ serving ──stop──▶ streams say goodbye, requests may end ──grace──▶ ended

The socket is bound before anything else, so that a port in use is said at once and port 0 is known.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from livewell.errors import ConfigurationError
from livewell.server.state import State
from livewell.server.transport import Protocol

_GRACE_SECONDS = 5
_BACKLOG = 2048


def bind(host: str, port: int) -> socket.socket:
    """A listening socket."""
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. Choose another with --port, or LIVEWELL_HTTP_PORT"
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

    def __init__(self, app: ASGIApp, state: State, bound: socket.socket) -> None:
        self._state = state
        self._socket = bound
        proxies = list(state.settings.proxies)
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=Protocol,
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
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Take no more; streams are told, and requests may end. A second time: at once."""
        self._server.force_exit = self._state.stopping.is_set()
        self._state.stopping.set()
        self._server.should_exit = True
