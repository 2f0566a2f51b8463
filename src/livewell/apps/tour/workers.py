"""The tour's two workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from livewell.apps.kit.processes import LivewellProcess


@asynccontextmanager
async def two_workers(
    target: str, *, queue: str, folder: Path, env: Mapping[str, str]
) -> AsyncIterator[list[LivewellProcess]]:
    """Start two workers, neither of which outlives the block."""
    workers: list[LivewellProcess] = []
    try:
        for letter in "ab":
            name, log = f"tour-{letter}", folder / f"tour-{letter}.log"
            workers.append(await LivewellProcess.start_worker(name, target, queue=queue, log=log, env=env))
        yield workers
        await asyncio.gather(*(worker.stop() for worker in workers))
    finally:
        await asyncio.gather(*(worker.kill() for worker in workers))  # Ctrl-C does not wait for manners
