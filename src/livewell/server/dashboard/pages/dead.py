"""What failed for good? Dead letters by queue and task; redrive one, or all that match."""

from __future__ import annotations

from livewell.errors import InvalidOption
from livewell.queue.admin import QueueAdmin
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts

REDRIVEN_MAX = 1000  # in one act; more are redriven by doing it again


async def panels(visit: Visit) -> list[Panel]:
    """Counts by reason, and the letters."""
    queue, task = visit.asked("queue"), visit.asked("task")

    async def reasons() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = [one for one in parts(sample.document, "queue", "queues") if one["dead"]]
        return of_sample(sample, "queue", queues=found, is_empty=not found)

    async def letters() -> Loaded:
        admin = QueueAdmin(visit.database, visit.state.nudger)
        found = await admin.dead(queue=queue, task=task, after=visit.after, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(letters=found, next=more, queue=queue or "", task=task or "", is_empty=not found)

    return [
        Panel("reasons", "By queue and reason", "dead_reasons.html", reasons, "Nothing has failed for good."),
        Panel("letters", "Dead letters", "dead.html", letters, "No dead letter matches."),
    ]


async def redrive(visit: Visit) -> Done:
    """Give dead letters another life: one by id, or those of a queue and task."""
    admin = QueueAdmin(visit.state.pools.operate, visit.state.nudger)
    number, queue, task = (visit.form.get(name, "").strip() for name in ("id", "queue", "task"))
    if number:
        if not (number.isascii() and number.isdigit() and int(number) < 2**63):
            raise InvalidOption(f"id {number[:20]!r}: the number of a dead letter is allowed")
        gone, kept = await admin.redrive([int(number)])
    elif queue or task:
        gone, kept = await admin.redrive(queue=queue or None, task=task or None, limit=REDRIVEN_MAX)
    else:
        raise InvalidOption("which ones? Name a letter, a queue or a task")
    stayed = f"; {kept} stayed, for a live job has their key" if kept else ""
    return Done(f"{gone} dead letter{'s' * (gone != 1)} redriven{stayed}.", "/dead")
