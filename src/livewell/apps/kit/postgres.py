"""A demo's own database: simulated values never lie beside real ones.

Embedded: a server with a folder of its own (.livewell-demo), emptied at the start, stopped at the
end, and started again when somebody kills it. With DATABASE_URL: a database of its own on that
server, removed at the end.
"""

from __future__ import annotations

import asyncio
import fcntl
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from livewell.db import embedded, scratch
from livewell.errors import LivewellError
from livewell.settings import Settings

__all__ = ["Home", "demo_folder", "home"]

_SCHEMAS = ("livewell_demo", "livewell_data", "livewell")  # the first: what a demo notes beside the product


@dataclass(slots=True)
class Home:
    """Where the demo's database is; folder and pid only where the server is ours."""

    address: str
    folder: Path | None = None
    pid: int | None = None
    outages: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=1_000))  # Unix seconds


def demo_folder(settings: Settings) -> Path:
    """Give the folder beside the one that everything else uses."""
    usual = settings.data_dir or embedded.default_data_dir()
    return usual.with_name(f"{usual.name}-demo")


@asynccontextmanager
async def home(settings: Settings, say: Callable[[str], None]) -> AsyncIterator[Home]:
    """Give an empty database, and leave nothing of it afterwards."""
    if settings.database_url is not None:
        async with _guest(settings.database_url.get_secret_value()) as found:
            yield found
        return
    folder = demo_folder(settings)
    server = await _started(folder, settings)
    with (folder / "demo.lock").open("w") as lock:
        _take(lock.fileno(), folder)
        found = Home(server.dsn, folder, server.pid)
        keeping: asyncio.Task[None] | None = None
        try:
            await asyncio.to_thread(_empty, server.dsn)
            keeping = asyncio.create_task(_keep(found, folder, settings, say), name="postgres-keeper")
            yield found
        finally:
            if keeping is not None:
                keeping.cancel()
                await asyncio.wait([keeping])
            await _stop(folder)


async def _started(folder: Path, settings: Settings) -> embedded.EmbeddedServer:
    """A start that is interrupted leaves nothing running."""
    try:
        return await embedded.started(folder, settings.postgres_bin)
    except asyncio.CancelledError:
        await _stop(folder)
        raise


async def _stop(folder: Path) -> None:
    """A crash on purpose, for nothing in it is needed again: Ctrl-C shall not wait for a
    checkpoint.
    """
    await asyncio.to_thread(embedded.stop, folder, mode="immediate")


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LivewellError(
            f"another demo is running on {folder}. Wait for its end, or set LIVEWELL_DATA_DIR to another folder"
        ) from None


def _empty(address: str) -> None:
    """Schemas, not the database: dropping one makes the server write everything to disk first,
    which takes seconds.
    """
    scratch.empty(address, _SCHEMAS)


async def _keep(found: Home, folder: Path, settings: Settings, say: Callable[[str], None]) -> None:
    """Start the server again whenever its process is gone."""

    def gone() -> None:
        say(f"Postgres (pid {found.pid}) is gone")

    def back(server: embedded.EmbeddedServer, seconds: float) -> None:
        found.pid = server.pid
        found.outages.append((time.time() - seconds, time.time()))
        say(f"Postgres is back as pid {server.pid}, {seconds:.1f} s later")

    tell = embedded.Tell(gone, back, lambda error: say(f"Postgres does not start: {error}"))
    await embedded.keep(folder, settings.postgres_bin, also_stopped=True, tell=tell)


@asynccontextmanager
async def _guest(address: str) -> AsyncIterator[Home]:
    name = f"livewell_demo_{secrets.token_hex(4)}"
    try:
        await asyncio.to_thread(scratch.create, address, name)
    except Exception as error:
        raise LivewellError(
            f"the demo needs a database of its own, and this server gives none: {str(error).strip()}. Unset "
            "DATABASE_URL to use the embedded server"
        ) from error
    try:
        yield Home(scratch.sibling(address, name))
    finally:
        await asyncio.to_thread(scratch.drop, address, name)
