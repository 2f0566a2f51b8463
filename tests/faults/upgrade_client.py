"""A program that enqueues, one job after another, until a file tells it to stop.

Run with the code of the release before, through an upgrade.

python -m tests.faults.upgrade_client STOP     prints `enqueued KEY JOB` for each, and `release VERSION` first
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from livewell.version import VERSION
from tests.faults.fleet_app import app, effect

PAUSE_SECONDS = 0.02


async def main(stop: Path) -> None:
    """Enqueue `effect` with keys from 1 on."""
    print(f"release {VERSION}", flush=True)
    async with app:
        key = 0
        while not stop.exists():  # noqa: ASYNC240 - another process makes it
            key += 1
            answer = await effect.enqueue(key=key)
            print(f"enqueued {key} {answer.id}", flush=True)
            await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
