"""Start the embedded server again when it was killed under a command that lives on it.

    alive ──its process is gone, its pid file is left──▶ killed ──start──▶ alive
      │                                                    └──does not start──▶ tried again, after pauses that grow
      └──stopped in order (livewell db stop): left alone, said once; somebody wanted that

Any number of commands may keep the same server: start() holds the folder's lock, and the second
command finds the server running.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from livewell.db.embedded.handle import EmbeddedServer
from livewell.db.embedded.placement import default_data_dir
from livewell.db.embedded.server import start, status, was_killed
from livewell.errors import EmbeddedPostgresError
from livewell.settings import Settings

log = structlog.get_logger("livewell.postgres")

_LOOK_SECONDS = 0.2
_PAUSE_SECONDS_MAX = 30.0


def _log_gone() -> None:
    log.warning("embedded postgres was killed; starting it again")


def _log_back(server: EmbeddedServer, seconds: float) -> None:
    log.warning("embedded postgres is back", pid=server.pid, seconds=round(seconds, 1))


def _log_trouble(error: str) -> None:
    log.error("embedded postgres does not start; trying again", error=error)


@dataclass(frozen=True, slots=True)
class Tell:
    """Functions that are called when the server is gone, is back, or does not start.

    Without them the log is told.
    """

    gone: Callable[[], None] = _log_gone
    back: Callable[[EmbeddedServer, float], None] = _log_back  # after so many seconds
    trouble: Callable[[str], None] = _log_trouble


async def keep(folder: Path, bin_dir: Path | None, *, also_stopped: bool = False, tell: Tell | None = None) -> None:
    """Revive the server of this folder until cancelled; also_stopped: whatever ended it."""
    tell = tell or Tell()
    gone_at: float | None = None
    stopped, failures = False, 0
    known: int | None = None
    while True:
        await asyncio.sleep(min(_PAUSE_SECONDS_MAX, _LOOK_SECONDS * 2 ** min(failures, 10)))
        found = await asyncio.to_thread(status, folder)
        if found is not None:
            if known not in (None, found.pid) and gone_at is None:
                tell.gone()  # between two looks, and another command has started it already
                tell.back(found, _LOOK_SECONDS)
            known, stopped, failures, gone_at = found.pid, False, 0, None
            continue
        try:
            if not also_stopped and not await asyncio.to_thread(was_killed, folder):
                if not stopped:
                    log.warning("embedded postgres was stopped; start it with: livewell db start", folder=str(folder))
                stopped = True
                continue
            if gone_at is None:
                gone_at = time.monotonic()
                tell.gone()
            server = await started(folder, bin_dir)
        except EmbeddedPostgresError as error:
            failures += 1
            tell.trouble(str(error).splitlines()[0])
        else:
            known = server.pid
            tell.back(server, time.monotonic() - gone_at)


@asynccontextmanager
async def kept_alive(settings: Settings) -> AsyncIterator[None]:
    """Within the block the embedded server is revived.

    Nothing happens where DATABASE_URL names another one.
    """
    if settings.database_url is not None:
        yield
        return
    folder = settings.data_dir or default_data_dir()
    keeping = asyncio.create_task(keep(folder, settings.postgres_bin), name="postgres-keeper")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def started(folder: Path, bin_dir: Path | None) -> EmbeddedServer:
    """Start it; a start that is interrupted is waited for, so that nothing is half started."""
    starting = asyncio.ensure_future(asyncio.to_thread(start, folder, bin_dir=bin_dir))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        raise
