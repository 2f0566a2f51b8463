"""What is being done to many? Acts on all that match: the question before, the progress, the list.

a list with a filter ──▶ /acts/new: counted, the number is typed ──POST /acts──▶ /acts/{id}: progress

Where nobody knows the number (there are more than are counted, or they are not all in the look) the
words "all of them" are typed instead: a number would confirm what was not counted.
"""

from __future__ import annotations

import secrets
from datetime import datetime

from livewell.errors import InvalidOption
from livewell.queue.bulk_acts import ALL, BulkAction, BulkActs, Matching
from livewell.queue.job_filter import NAMES, JobFilter
from livewell.server.answers.json_answer import cursor
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.pages.act_query import address, database_now, filter_of
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.words import number

_KEY_CHARS_MAX = 100
_SEPARATORS = str.maketrans("", "", " ,.'+\u00a0\u2009\u202f")
# What it does, to what, and what that means.
WORDS = {
    BulkAction.CANCEL: (
        "Cancel",
        "live jobs",
        "Jobs that wait are cancelled at once. The workers of running ones are told to end them.",
    ),
    BulkAction.HASTEN: ("Run now", "delayed jobs", "They become ready at once, whatever their time was."),
    BulkAction.REDRIVE: (
        "Redrive",
        "dead letters",
        "They run again under their ids, with all of their attempts. What they did before may happen a second time.",
    ),
    BulkAction.DISCARD: (
        "Discard",
        "dead letters",
        "They are deleted for good: nobody can look at them or redrive them any more.",
    ),
}


async def panels(visit: Visit) -> list[Panel]:
    """All acts, the newest first."""

    async def load() -> Loaded:
        found = await BulkActs(visit.database, visit.state.nudger).list(before=visit.after or None, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(acts=found, words=WORDS, next=more, is_empty=not found)

    empty = "Nobody has acted on many at once. Lists of jobs and dead letters offer it."
    return [Panel("acts", "The newest first", "acts.html", load, empty)]


async def new(visit: Visit) -> list[Panel] | Elsewhere:
    """How many match, and the question whether that is meant.

    The address gets a key, so that the same form sent twice is one act, and the instant of the
    first look: nothing younger is touched.
    """
    if "action" not in visit.query:
        return Elsewhere("/acts")
    action = _action(visit.query["action"])
    chosen = await filter_of(visit.database, visit.query)
    key, at = visit.asked("request"), _at(visit.query.get("at"))
    if key is None or at is None:
        now = await database_now(visit.database)
        fields = {"action": action.value, **chosen.to_query()}
        return Elsewhere(address("/acts/new", {**fields, "at": now.isoformat(), "request": secrets.token_urlsafe(12)}))
    fields = {"action": action.value, **chosen.to_query(), "at": at.isoformat(), "request": key}
    verb, things, meaning = WORDS[action]

    async def load() -> Loaded:
        found = await BulkActs(visit.database, visit.state.nudger).count(action, chosen, before=at)
        return loaded(
            found=found,
            confirmed=_confirmed(found),
            verb=verb,
            things=things,
            meaning=meaning,
            is_dangerous=action in (BulkAction.DISCARD, BulkAction.CANCEL),
            chosen=chosen.to_query(),
            fields=fields,
            is_empty=found.n == 0 and found.is_exact,
        )

    return [Panel("question", f"{verb} {things}", "act_new.html", load, f"No {things} match: there is nothing to do.")]


async def one(visit: Visit) -> list[Panel]:
    """How far it is."""
    act_id = visit.number("id")
    acts = BulkActs(visit.database, visit.state.nudger)
    record = await acts.show(act_id)
    verb, things, _ = WORDS[BulkAction(record["action"])]

    async def load() -> Loaded:
        expected = Matching(record["expected"], record["how"])
        return loaded(act=record, expected=expected, verb=verb, things=things)

    return [Panel("act", f"{verb} {things}", "act.html", load)]


async def begin(visit: Visit) -> Done:
    """Ask for it, if what was typed is what the form asked for."""
    action, chosen = _action(visit.form.get("action", "")), JobFilter.from_query(visit.form)
    at, key = _at(visit.form.get("at")), visit.form.get("request", "")[:_KEY_CHARS_MAX]
    shown, typed = visit.form.get("count", ""), visit.form.get("typed", "")
    is_number = shown.isascii() and shown.isdigit() and len(shown) < 10
    if not (is_number or shown == ALL) or at is None or not key:
        raise InvalidOption("the form is not complete; begin again from the list")
    if bare(typed) != bare(shown):
        fields = {name: value for name, value in visit.form.items() if name in (*NAMES, "action", "at", "request")}
        wanted = f"the number is {number(int(shown))}" if is_number else f'the words are "{ALL}"'
        wrong = f"Nothing was done: you typed {typed.strip()[:20] or 'nothing'}, and {wanted}."
        return Done(wrong, address("/acts/new", fields))
    acts = BulkActs(visit.state.pools.operate, visit.state.nudger)
    begun = await acts.confirm(action, chosen, expected=int(shown) if is_number else None, key=key, before=at)
    return Done(begun.words, f"/acts/{begun.id}")


async def cancel(visit: Visit) -> Done:
    """Stop it where it is."""
    act_id = visit.number("id")
    answer = await BulkActs(visit.state.pools.operate, visit.state.nudger).cancel(act_id)
    said = "is cancelled: what is done stays done." if answer == "cancelled" else "had ended already: nothing was done."
    return Done(f"Act {act_id} {said}", f"/acts/{act_id}")


def _confirmed(found: Matching) -> str:
    """What is to be typed."""
    return str(found.n) if found.is_exact else ALL


def bare(typed: str) -> str:
    """Without what people put between digits, and without care for capitals."""
    return typed.translate(_SEPARATORS).lower()


def _action(text: str) -> BulkAction:
    try:
        return BulkAction(text)
    except ValueError:
        allowed = ", ".join(BulkAction)
        raise Problem(400, f"Which action? Allowed are {allowed}.", word="invalid", allowed=allowed) from None


def _at(text: str | None) -> datetime | None:
    """When the number was first counted."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
