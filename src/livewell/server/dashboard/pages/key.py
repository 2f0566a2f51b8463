"""Why is one value as it is? The reason in words with the next step, the value, its times; refresh, TTL of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from livewell import words
from livewell.refresh.nudges import DUE
from livewell.refresh.registry.admin import TypeAdmin
from livewell.refresh.registry.keys import KeyAdmin, Refreshed
from livewell.refresh.why import WhyKey, why_key
from livewell.server.answers.problems import not_found
from livewell.server.dashboard.pages.type import key_address, reason_words
from livewell.server.dashboard.rendering import read_exact, shown, write_exact
from livewell.server.dashboard.visit import Done, Elsewhere, Loaded, Panel, Visit, loaded

ROWS_MAX = 50
_NUMBERS = ("numeric", "bigint", "integer", "double")

_NO_ANSWER = "No answer has come for this key since its history is kept."
_OUTCOMES = {
    "stored": ("fresh", "new content, stored"),
    "corrected": ("fresh", "other content of the same source time, stored"),
    "unchanged": ("fresh", "the same content, confirmed"),
    "missing": ("none", "the source says that there is no such key"),
    "older": ("warn", "older than what is stored: not stored"),
}

# reason → where the next step is done, and its words
_STEPS = {
    "parked_type": ("/types/{type}", "Resume the type, once the plan includes it"),
    "paused_type": ("/types/{type}", "Resume the type"),
    "paused_upstream": ("/limits", "Resume the upstream"),
    "paused_queue": ("/work", "Resume its queue"),
    "no_worker": ("/work", "See which workers there are"),
    "no_task": ("/work", "See which workers there are"),
    "no_credential": ("/doctor", "See what the doctor says of credentials"),
    "queue_limit": ("/work", "See the queue"),
    "behind": ("/work", "See the queue"),
    "stalled": ("/work", "See the queue"),
    "concurrency": ("/limits", "See the limits"),
    "rate": ("/limits", "See the limits, and what to slow down"),
    "budget": ("/limits", "See the budget, and what to slow down"),
    "breaker": ("/limits", "Probe the upstream, or close its breaker"),
    "probe": ("/limits", "See the breaker"),
    "upstream": ("/limits", "See the silence, and end it"),
    "due": ("/limits", "See the limits, and what to slow down"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A value as rows of cells; None is an empty cell. numeric: which columns hold numbers."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str | None, ...], ...]


async def panels(visit: Visit) -> list[Panel] | Elsewhere:
    """Why, the value, its times."""
    name, key = visit.parts["name"], visit.parts["key"]
    if "\x00" in key:
        raise not_found()
    record = await TypeAdmin(visit.database).type(name)
    if not key:
        return Elsewhere(f"/types/{name}")
    admin = KeyAdmin(visit.database)
    reading: asyncio.Future[WhyKey] | None = None

    async def asked() -> WhyKey:
        """Once for both panels."""
        nonlocal reading
        reading = reading or asyncio.ensure_future(why_key(visit.database, name, key))
        return await reading

    async def why() -> Loaded:
        found = await asked()
        if not visit.may_operate:
            found = found.without_errors()
        return loaded(
            why=found,
            words=_sentence(found.operator_words),
            step=next_step(found),
            failure=reason_words(found.failure) if found.failure else "",
            type=record,
            name=name,
            key=key,
        )

    async def value() -> Loaded:
        text = await admin.value(name, key, rows_max=ROWS_MAX)
        if text is None:
            return loaded(is_empty=True)
        return loaded(table=value_table(text, record["columns"]), one=record["rows_kind"] == "one", rows_max=ROWS_MAX)

    async def times() -> Loaded:
        found = await asked()
        known = await admin.show(name, key)
        steps = time_steps(found, known, record) if known else []
        return loaded(steps=steps, known=known, why=found, type=record, name=name, key=key, is_empty=known is None)

    async def history() -> Loaded:
        found = await admin.answers(name, key)
        return loaded(answers=[{**one, **outcome_words(one["outcome"])} for one in found], is_empty=not found)

    is_one = record["rows_kind"] == "one"
    never = "Nobody ever asked for this key, so nothing is known of it. Refresh now asks for it."
    why_panel = Panel("why", f"{name} {shown(key)}", "key_why.html", why)
    times_panel = Panel("times", "How old it is, and how that is known", "key_times.html", times, never, wide=False)
    value_panel = Panel("value", "The stored value", "key_value.html", value, "No value is stored.", wide=not is_one)
    history_panel = Panel("history", "The last answers", "key_history.html", history, _NO_ANSWER, wide=False)
    last = [value_panel, history_panel] if is_one else [history_panel, value_panel]
    return [why_panel, times_panel, *last]


async def refresh(visit: Visit) -> Done:
    """Fetch one key now, if the limits allow."""
    name, key = _named(visit)
    found = await KeyAdmin(visit.state.pools.operate).refresh(name, key)
    if found.demand == "queued" and found.queue:
        visit.state.nudger.nudge(found.queue)
    elif found.demand == "due":
        visit.state.nudger.nudge(DUE)
    return Done(f"{name} {shown(key)}: {refreshed_words(found)}.", key_address(name, key))


async def set_ttl(visit: Visit) -> Done:
    """Give one key a TTL of its own."""
    name, key = _named(visit)
    seconds = await TypeAdmin(visit.state.pools.operate).set_ttl(name, key, visit.form.get("ttl", "").strip())
    visit.state.nudger.nudge(DUE)
    return Done(
        f"{name} {shown(key)} is fresh for {words.span(seconds)} after each check, from now on.", key_address(name, key)
    )


async def clear_ttl(visit: Visit) -> Done:
    """Let the TTL of the type hold again."""
    name, key = _named(visit)
    had = await TypeAdmin(visit.state.pools.operate).clear_ttl(name, key)
    visit.state.nudger.nudge(DUE)
    said = "has the TTL of its type again" if had else "had no TTL of its own: nothing was changed"
    return Done(f"{name} {shown(key)} {said}.", key_address(name, key))


def outcome_words(outcome: str) -> dict[str, str]:
    """The tone of an answer, and what became of it in words."""
    tone, words_of = _OUTCOMES.get(outcome, ("bad", reason_words(outcome)))
    return {"tone": tone, "words": words_of}


def next_step(found: WhyKey) -> tuple[str, str] | None:
    """Address and words of what to do next; None if time, or Refresh now, does it."""
    if found.job_id is not None and found.reason in ("running", "delayed", "next", "suspect", "held_key", "held_group"):
        return f"/work/jobs/{found.job_id}", "See its job"
    step = _STEPS.get(found.reason)
    return (step[0].format(type=found.type), step[1]) if step else None


def time_steps(found: WhyKey, known: Mapping[str, Any], record: Mapping[str, Any]) -> list[tuple[str, Any, str, str]]:
    """The times of a value in their order of meaning: (word, instant, tone, note)."""
    steps: list[tuple[str, datetime | None, str, str]] = [
        ("Source", found.source_at, "none", _source_note(found, record)),
        ("Fetched", found.fetched_at, "none", "when the content that is stored was fetched"),
        ("Changed", known["changed_at"], "none", f"when it last became different: version {known['version']:,}"),
        ("Checked", found.checked_at, "none", "when an answer last confirmed it"),
        ("Last try", found.tried_at, "bad", f"brought nothing, {found.tries:,} in a row"),
        ("Failing since", found.failing_since, "bad", found.failure or ""),
        ("Next try", found.retry_at, "warn", "backed off until then, whoever watches"),
        ("Fresh until", found.fresh_until, "fresh" if found.reason == found.verdict else "warn", "by its rule"),
        ("Verdict may turn", known["turns_at"], "none", "by the mere passing of time"),
        ("Looked at again", known["due_at"], "none", "by the due check"),
    ]
    return [step for step in steps if step[1] is not None or step[0] in ("Source", "Fetched", "Checked")]


def value_table(text: str, columns: Sequence[Mapping[str, Any]]) -> Table:
    """The stored value with every digit, the last rows first."""
    read = read_exact(text)
    rows = [read] if isinstance(read, dict) else read[::-1]
    names = tuple(str(column["name"]) for column in columns if column["name"] != "key")
    kinds = {column["name"]: column["type"] for column in columns}
    return Table(
        names,
        tuple(kinds[name] in _NUMBERS for name in names),
        tuple(tuple(_cell(row.get(name), kinds[name]) for name in names) for row in rows),
    )


def refreshed_words(found: Refreshed) -> str:
    """What became of the wish."""
    until = "" if found.retry_at is None else f" until {found.retry_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return _REFRESHED.get(found.throttled or found.demand, found.demand).format(until=until)


_REFRESHED = {
    "queued": "a refresh is queued",
    "waiting": "a refresh is under way already",
    "due": "a refresh is asked for; the due check comes to it",
    "none": "it was checked at this instant",
    "missing": "the source has said that there is no such key, and that is believed; nothing was asked",
    "backed_off": "it failed, and is not asked for{until}",
    "paused": "its type or its upstream is paused: nothing is fetched",
    "parked": "its type is parked, the plan of the upstream does not include it: nothing is fetched",
    "budget": "the budget is used up{until}",
    "breaker": "the breaker of its upstream is open{until}",
    "upstream": "its upstream asked for silence{until}",
    "probe": "one call is trying whether its upstream is back; ask again then",
}


def _cell(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) and kind not in (*_NUMBERS, "jsonb") else write_exact(value)


def _source_note(found: WhyKey, record: Mapping[str, Any]) -> str:
    if found.source_at is None:
        return "the source gives no time of its own"
    limit = record["max_source_age_seconds"]
    return "what the source says of its own time" + (f"; lagging after {words.span(limit)}" if limit else "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _named(visit: Visit) -> tuple[str, str]:
    name, key = visit.parts["name"], visit.parts["key"]
    if "\x00" in key or "\x00" in name:
        raise not_found()
    return name, key
