"""What beacons do in a worker: a task that records one, and a duty that logs who is silent."""

from __future__ import annotations

import structlog

from livewell import Livewell
from livewell.schedule.definition import Duty
from livewell.schedule.work import Work, WorkerContext
from livewell_beacons.beacons import Beacons

log = structlog.get_logger("livewell.beacons")


def declare(app: Livewell) -> None:
    """Called once, before an app opens."""

    @app.task(queue="beacons", name="beacons.see")
    async def see(name: str, every_seconds: float) -> None:
        """For programs that report in a transaction: app.enqueue("beacons.see", …, tx=tx)."""
        await Beacons(app).see(name, every_seconds)


def work(context: WorkerContext) -> Work:
    """Called once for each worker."""

    async def look() -> int:
        silent = [one["name"] for one in await Beacons(context).all() if one["late"]]
        if silent:
            log.warning("beacons are silent", names=silent)
        return len(silent)

    return Work(duties=[Duty("beacons.look", 60.0, look)])
