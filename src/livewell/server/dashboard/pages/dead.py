"""What failed for good? Dead letters by group and one by one; one letter: mend, redrive, discard."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote_plus

from livewell.errors import InvalidOption, InvalidPayload, JobNotFound
from livewell.model import JobState
from livewell.queue.admin import QueueAdmin
from livewell.queue.dead_letters import LOOK_ROWS, DeadLetters
from livewell.queue.job_filter import NAMES, JobFilter
from livewell.server.answers.json_answer import cursor, place
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.pages.act_query import REASONS, address, filter_of
from livewell.server.dashboard.pages.payload import has_secrets, masked, record_reveal
from livewell.server.dashboard.rendering import editable
from livewell.server.dashboard.visit import PAGE_ROWS, Answer, Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.telemetry.control_characters import escaped
from livewell.telemetry.logs import hide

_BODY_SHARE = 0.75  # of the largest body that a form may fill when it is shown: what is typed needs room too
_EXPLAINED = {
    "attempts": "It failed in each of its attempts.",
    "refused": "Its task said that it can never succeed.",
    "payload": "Its payload does not fit the task, or is too large.",
    "lost": "Too many workers ended while they held it.",
}
_NEXT = {
    "attempts": ("See whether other letters of this task died of the same; then mend the cause and redrive.", "group"),
    "refused": ("Redriving it as it is fails again: edit its payload, or discard it.", ""),
    "payload": ("Edit its payload, or deploy the code that reads it; then redrive it.", ""),
    "lost": ("It may have ended its workers (memory, a crash): see the workers before it is redriven.", "workers"),
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
        error, trace = hide(record["error"]), hide(record["traceback"])
        step = next_step(record)
        return loaded(
            job=record,
            error=error,
            traceback=trace,
            errors=hide(record["errors"]),
            explained=_EXPLAINED.get(record["reason"], ""),
            step=step,
        )

    async def payload() -> Loaded:
        if has_secrets(record["payload"]):
            return loaded(job=record, payload=masked(record["payload"]), has_secrets=True, edit=None)
        return loaded(job=record, payload=record["payload"], has_secrets=False, edit=_edit(visit, record))

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


async def reveal(visit: Visit) -> Answer:
    """Show the payload as it is stored, secrets included, to be edited; who looked is written down."""
    number = visit.number("id")
    record = await _acting(visit).letter(number)
    await record_reveal(visit, "dead.reveal", f"job {number}")
    return _answer(record, _edit(visit, record))


async def edit(visit: Visit) -> Done | Answer:
    """Replace the payload of one letter, if it is still the one that the form showed.

    What is refused is shown again as it was typed.
    """
    number, admin = visit.number("id"), _acting(visit)
    record = await admin.letter(number)
    text, was = visit.form.get("payload", ""), visit.form.get("was", "")
    try:
        if _seen(record["payload"]) != was:
            raise InvalidOption("somebody else changed the payload meanwhile; look at it again before you save")
        await admin.edit(number, text, was=record["payload"])
    except (InvalidOption, InvalidPayload) as error:
        return _answer(record, {"was": was, "text": escaped(text)}, refused=str(error))
    return Done(f"Dead letter {number} has a new payload. Redrive it to run it.", f"/dead/{number}")


def next_step(record: Mapping[str, Any]) -> tuple[str, str]:
    """What to do with a letter that died for this reason: words, and the page that helps; "" if this one does."""
    return _NEXT.get(record["reason"] or "", ("Look at the error, then redrive or discard it.", ""))


def _edit(visit: Visit, record: Mapping[str, Any]) -> dict[str, str] | None:
    """What the form for a payload holds; None if it would be too large to be sent back."""
    text = editable(record["payload"])
    sent = len(quote_plus(text)) <= visit.state.settings.body_bytes_max * _BODY_SHARE
    return {"was": _seen(record["payload"]), "text": text} if sent else None


def _answer(record: Mapping[str, Any], form: Mapping[str, str] | None, *, refused: str = "") -> Answer:
    """The payload as it is stored and the form that edits it, or the form again as it was sent."""

    async def load() -> Loaded:
        return loaded(job=record, payload=record["payload"], edit=form, refused=refused)

    title = f"Payload of dead letter {record['id']}"
    return Answer(title, [Panel("payload", title, "dead_edit.html", load)], 400 if refused else 200)


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
