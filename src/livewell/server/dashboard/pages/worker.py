"""What does this worker do? One incarnation: its lease, its queues, what it runs, what was lost with it.

registered ──renews──▶ lives ──stops──▶ gone
                         └──lease over──▶ buried: its jobs are lost, and taken back
"""

from __future__ import annotations

from livewell.server.answers.problems import not_found
from livewell.server.dashboard.pages.queues import admin
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded

_GONE = "It is not there any more: its lease ran out, and it was buried. Its jobs were taken back."


async def panels(visit: Visit) -> list[Panel]:
    """Itself, its jobs, and those that were lost with it."""
    number = visit.number("id")
    worker = await admin(visit).worker(number)
    lost = await admin(visit).lost(number, limit=PAGE_ROWS)
    if worker is None and not lost:
        raise not_found()

    async def itself() -> Loaded:
        return loaded(one=worker, is_empty=worker is None)

    async def held() -> Loaded:
        jobs = await admin(visit).held(number, limit=PAGE_ROWS)
        others = max(0, (worker or {}).get("holds", 0) - len(jobs)) if len(jobs) == PAGE_ROWS else 0
        return loaded(jobs=jobs, others=others, is_empty=not jobs)

    async def losses() -> Loaded:
        return loaded(lost=lost, is_part=len(lost) == PAGE_ROWS, is_empty=not lost)

    title = f"Worker {worker['name']}" if worker else f"Worker {number}"
    free = "Nothing: every slot is free." if worker else "Nothing: it is not there any more."
    lives = "None: it lives. Jobs are taken back only from a worker whose lease has run out."
    return [
        Panel("worker", title, "worker.html", itself, _GONE),
        Panel("held", "What it runs now", "worker_held.html", held, free),
        Panel("lost", "Jobs that were lost with it", "worker_lost.html", losses, lives),
    ]
