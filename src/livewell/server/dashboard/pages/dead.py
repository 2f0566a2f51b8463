"""What failed for good? Dead letters by group and one by one; one letter: mend, redrive, discard."""

from __future__ import annotations

import hashlib
from datetime import datetime

from livewell.errors import InvalidOption, JobNotFound
from livewell.model import JobState
from livewell.queue.admin import QueueAdmin
from livewell.queue.dead_letters import LOOK_ROWS, DeadLetters
from livewell.queue.job_filter import NAMES, JobFilter
from livewell.server.answers.json_answer import cursor, place
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.pages.act_query import REASONS, address, filter_of
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Elsewhere, Loaded, Panel, Visit, loaded

EDITED_CHARS_MAX = 60_000  # of a payload in a form; larger ones are edited from a file
_EXPLAINED = {
    "attempts": "It failed in each of its attempts.",
    "refused": "Its task said that it can never succeed.",
    "payload": "Its payload does not fit the task, or is too large.",
    "lost": "Too many workers ended while they held it.",
}
_ACTIONS = [("redrive", "Redrive"), ("discard", "Discard")]


async def panels(visit: Visit) -> list[Panel]:
    """The filter, the groups, and the letters."""
    chosen = await filter_of(visit.database, {**visit.query, "state": ""})
    before = _before(visit.query.get("after"))
    dead = DeadLetters(visit.database)
    query = {name: visit.query[name] for name in NAMES if visit.query.get(name)}

    async def filters() -> Loaded:
        return loaded(query=query, reasons=REASONS, bulk_filter=chosen.to_query(), bulk_actions=_all(query))

    async def groups() -> Loaded:
        found = await dead.groups(chosen)
        for group in found.groups:
            own = {name: group[name] for name in ("queue", "task", "reason")}
            group["filter"] = {**chosen.to_query(), **own}
            group["link"] = address("/dead", {**query, **own})
        return loaded(found=found, look=LOOK_ROWS, bulk_actions=_ACTIONS, is_empty=not found.groups)

    async def letters() -> Loaded:
        found = await dead.page(chosen, before=before, limit=PAGE_ROWS)
        more = cursor(f"{found.next_at} {found.next_id}") if found.next_at else None
        query_text = address("", query).removeprefix("?")
        return loaded(found=found, next=more, query=query_text, is_empty=not (found.letters or more))

    fine = "Nothing has failed for good." if chosen == JobFilter() else "No dead letter matches."
    return [
        Panel("filters", "Which letters", "dead_filter.html", filters),
        Panel("groups", "By queue, task and reason", "dead_groups.html", groups, fine),
        Panel("letters", "The newest first", "dead.html", letters, fine),
    ]


async def one(visit: Visit) -> list[Panel] | Elsewhere:
    """One letter; a job that is none any more has a page of its own."""
    number = visit.number("id")
    admin = QueueAdmin(visit.database, visit.state.nudger)
    record = await admin.job(number)
    if record["state"] != JobState.FAILED:
        return Elsewhere(f"/work/jobs/{number}")

    async def what() -> Loaded:
        return loaded(job=record, explained=_EXPLAINED.get(record["reason"], ""))

    async def payload() -> Loaded:
        is_small = len(record["payload"]) <= EDITED_CHARS_MAX
        return loaded(job=record, was=_seen(record["payload"]), is_small=is_small)

    return [
        Panel("letter", f"Dead letter {number}", "dead_letter.html", what),
        Panel("payload", "Payload", "dead_payload.html", payload),
    ]


async def redrive(visit: Visit) -> Done:
    """Give one letter another life."""
    number = visit.number("id")
    went, stayed = await _acting(visit).redrive([number])
    if went:
        return Done(f"Dead letter {number} is redriven: it runs as soon as a worker is free.", _back(visit))
    if stayed:
        return Done(f"Dead letter {number} stayed: a live job has its key. Nothing was done.", f"/dead/{number}")
    raise _gone(number)


async def discard(visit: Visit) -> Done:
    """Delete one letter for good."""
    number = visit.number("id")
    if not await _acting(visit).discard([number]):
        raise _gone(number)
    return Done(f"Dead letter {number} is discarded.", "/dead")


async def edit(visit: Visit) -> Done:
    """Replace the payload of one letter, if it is still the one that the form showed."""
    number, admin = visit.number("id"), _acting(visit)
    record = await admin.letter(number)
    if _seen(record["payload"]) != visit.form.get("was"):
        raise InvalidOption(f"somebody else changed the payload of dead letter {number} meanwhile; look at it again")
    await admin.edit(number, visit.form.get("payload", ""), was=record["payload"])
    return Done(f"Dead letter {number} has a new payload. Redrive it to run it.", f"/dead/{number}")


def _all(query: dict[str, str]) -> list[tuple[str, str]]:
    which = "all that match" if query else "all"
    return [(action, f"{words} {which}") for action, words in _ACTIONS]


def _before(after: str | None) -> tuple[datetime, int] | None:
    """Where a page begins: behind a letter, by time and id."""
    try:
        at, _, number = place(after).rpartition(" ")
        return (datetime.fromisoformat(at), int(number)) if at else None
    except ValueError:
        raise Problem(400, "This is not a cursor of ours.", word="invalid", field="query.after") from None


def _back(visit: Visit) -> str:
    """The list, as it was filtered, if the form was in it."""
    asked = visit.form.get("query", "")[:1000]
    return f"/dead?{asked}" if asked and asked.isascii() and asked.isprintable() else "/dead"


def _seen(payload: str) -> str:
    return hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()


def _gone(number: int) -> JobNotFound:
    return JobNotFound(f"dead letter {number}: somebody has redriven or discarded it meanwhile")


def _acting(visit: Visit) -> QueueAdmin:
    return QueueAdmin(visit.state.pools.operate, visit.state.nudger)
