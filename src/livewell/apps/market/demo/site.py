"""The web site of the demo: `livewell serve` as a process of its own, and the way in.

It serves from the demo's own database. On the embedded server each kind of request uses a role of
its own. On the server of DATABASE_URL, whose roles the demo must not change, one login does all.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from livewell.apps.kit.postgres import Home
from livewell.apps.kit.processes import KeptProcess, LivewellProcess, Say
from livewell.db import Database
from livewell.errors import ConfigurationError
from livewell.settings import Settings

_READY_SECONDS = 30.0
_TRY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Door:
    """How people and programs get in.

    Keys and links belong to the server, which stands above the apps, so the caller passes them in.
    link: an address that logs a browser in, once; key: a public key for programs.
    """

    link: Callable[[Database, Settings, str], Awaitable[str]]
    key: Callable[[Database], Awaitable[str]]


def choose_port(settings: Settings, wanted: int | None) -> int:
    """Choose the port that is wanted, or the usual one, or any free one if the usual is taken. It
    is chosen once: a server that was killed comes back where it was.
    """
    for port in [wanted] if wanted is not None else [settings.http_port, 0]:
        try:
            with socket.create_server((settings.http_host.strip("[]"), port)) as tried:
                return int(tried.getsockname()[1])
        except OSError as error:
            problem = error.strerror or str(error)
    raise ConfigurationError(f"cannot listen on {settings.http_host}:{wanted}: {problem}. Choose another with --port")


def server_environment(home: Home) -> Mapping[str, str]:
    """Where its database is, and nothing about any other."""
    if home.folder is not None:
        return {"LIVEWELL_DATA_DIR": str(home.folder), "LIVEWELL_LOG_LEVEL": "error"}
    addresses = {"LIVEWELL_DATABASE_URL": home.address, "LIVEWELL_LISTEN_URL": home.address}
    return {**addresses, "LIVEWELL_ROLES": "none", "LIVEWELL_LOG_LEVEL": "error"}


def kept_server(folder: Path, home: Home, port: int, say: Say) -> KeptProcess:
    """`livewell serve`."""

    async def spawn(_: int) -> LivewellProcess:
        return await LivewellProcess.start(
            "server", ["serve", f"--port={port}"], log=folder / "server.log", env=server_environment(home)
        )

    return KeptProcess("server", spawn, say)


async def answers(host: str, port: int) -> bool:
    """Wait until it takes connections; false when it does not within a while."""
    until = time.monotonic() + _READY_SECONDS
    while time.monotonic() < until:
        try:
            _, writer = await asyncio.open_connection(host.strip("[]"), port)
        except OSError:
            await asyncio.sleep(_TRY_SECONDS)
        else:
            writer.close()
            return True
    return False
