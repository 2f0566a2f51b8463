"""Open the queue for a command that only looks or mends.

It connects, checks that the schema fits, acts, and disconnects.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.queue.admin import QueueAdmin

T = TypeVar("T")


def administer(act: Callable[[QueueAdmin], Awaitable[T]]) -> T:
    """Run one administrative act on the configured database."""
    return with_app(lambda app: act(app.admin))


def with_app(act: Callable[[Livewell], Awaitable[T]]) -> T:
    """Run something on an open app that declares no tasks: looking needs none."""
    from livewell.app import Livewell  # noqa: PLC0415 - heavy
    from livewell.db.acts import act_as  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    settings = Settings.load()
    logs.configure(level=settings.log_level, form=settings.log_format)

    async def run() -> T:
        act_as(person_here(), "cli")
        async with Livewell(settings) as app:
            return await act(app)

    return asyncio.run(run())


def person_here() -> str:
    """Who sits at this terminal, for the audit and for what belongs to people."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())  # a container may have no name for its user
    return f"cli:{name}@{socket.gethostname()}"


async def database_now(app: Livewell) -> datetime:
    """The database's clock: ages are told by it, since it wrote the times."""
    now: datetime = (await app.database.call("SELECT livewell.now()"))[0][0]
    return now
