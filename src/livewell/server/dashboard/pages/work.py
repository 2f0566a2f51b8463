"""What is running, what is stuck? Queues, workers, jobs, one job."""

from __future__ import annotations

from urllib.parse import quote

from livewell.model import Cancelled
from livewell.queue.admin import QueueAdmin
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts

STATES = ("delayed", "held", "ready", "running")


async def queues(visit: Visit) -> list[Panel]:
    """Queues and workers."""

    async def of_queues() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = parts(sample.document, "queue", "queues")
        return of_sample(sample, "queue", queues=found, is_empty=not found)

    async def of_workers() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = parts(sample.document, "queue", "workers")
        return of_sample(sample, "queue", workers=found, is_empty=not found)

    return [
        Panel("queues", "Queues", "queues.html", of_queues, "No queue is declared yet: a worker declares its queues."),
        Panel("workers", "Workers", "workers.html", of_workers, "No worker runs. Start one with: livewell worker"),
    ]


async def jobs(visit: Visit) -> list[Panel]:
    """Live jobs, by queue and state; the next page goes on after the last id."""
    queue, state = visit.asked("queue"), visit.asked("state", among=STATES)

    async def load() -> Loaded:
        found = await _admin(visit).jobs(queue=queue, state=state, after=visit.after, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(jobs=found, next=more, queue=queue, state=state, is_empty=not found)

    async def filters() -> Loaded:
        return loaded(queue=queue or "", state=state or "", states=STATES)

    return [
        Panel("filters", "Which jobs", "jobs_filter.html", filters),
        Panel("jobs", "Live jobs", "jobs.html", load, "No live job matches. Finished jobs are found by their id."),
    ]


async def look(visit: Visit) -> Elsewhere:
    """A job by the id that somebody typed."""
    return Elsewhere(f"/work/jobs/{quote(visit.asked('id') or '0', safe='')}")


async def one_job(visit: Visit) -> list[Panel]:
    """Everything about one job."""
    number = visit.number("id")

    async def load() -> Loaded:
        record = await _admin(visit).job(number)
        return loaded(job=record)

    async def why() -> Loaded:
        found = await _admin(visit).why(number)
        return loaded(why=found)

    await _admin(visit).job(number)
    return [Panel("why", "Why", "job_why.html", why), Panel("job", f"Job {number}", "job.html", load)]


async def pause(visit: Visit) -> Done:
    """Claim nothing more from a queue; what runs may end."""
    await _acting(visit).pause(visit.parts["name"], paused=True)
    return Done(f"{visit.parts['name']} is paused: what runs may end, nothing more is begun.", "/work")


async def resume(visit: Visit) -> Done:
    """Claim from it again."""
    await _acting(visit).pause(visit.parts["name"], paused=False)
    return Done(f"{visit.parts['name']} goes on.", "/work")


async def cancel(visit: Visit) -> Done:
    """Cancel a waiting job at once, ask the worker of a running one."""
    number = visit.number("id")
    words = {
        Cancelled.NOW: f"Job {number} is cancelled: it never ran.",
        Cancelled.REQUESTED: f"The worker of job {number} is told to end it.",
        Cancelled.TOO_LATE: f"Job {number} had ended already: nothing was done.",
        Cancelled.UNKNOWN: f"Job {number} is gone: nothing was done.",
    }
    return Done(words[await _acting(visit).cancel(number)], f"/work/jobs/{number}")


async def retry(visit: Visit) -> Done:
    """Run a delayed job now, or give a dead letter another life."""
    number = visit.number("id")
    done = await _acting(visit).retry(number)
    said = (
        f"Job {number} runs as soon as a worker is free."
        if done
        else f"Job {number} is neither delayed nor dead, or its key is taken: nothing was done."
    )
    return Done(said, f"/work/jobs/{quote(str(number))}")


def _admin(visit: Visit) -> QueueAdmin:
    return QueueAdmin(visit.database, visit.state.nudger)


def _acting(visit: Visit) -> QueueAdmin:
    return QueueAdmin(visit.state.pools.operate, visit.state.nudger)
