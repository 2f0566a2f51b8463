"""How fresh is one type? Verdicts, keys, failures by reason, what it cost, its definition; pause and resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from livewell.refresh.nudges import DUE
from livewell.refresh.reasons import MEANING
from livewell.refresh.registry.admin import TypeAdmin
from livewell.refresh.registry.keys import VERDICTS, WANTED, KeyAdmin
from livewell.server.dashboard.pages.overview import of_sample, with_shares
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts

WATCHED = "watched"
_MEANINGS = {str(reason): meaning.words for reason, meaning in MEANING.items()}
_CHOICES = (*WANTED, WATCHED)


async def panels(visit: Visit) -> list[Panel] | Elsewhere:
    """What it is now, its keys, what fails, the last day, its definition."""
    name = visit.parts["name"]
    typed = visit.asked("key")
    if typed is not None:
        return Elsewhere(key_address(name, typed))
    record = await TypeAdmin(visit.database).type(name)
    admin = KeyAdmin(visit.database)

    async def now() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        types = parts(sample.document, "refresh", "types")
        found = next((with_shares(one) for one in types if one["name"] == name), None)
        return of_sample(sample, "refresh", type=record, state=found, name=name)

    async def keys() -> Loaded:
        wanted = visit.asked("show", among=_CHOICES)
        data: dict[str, Any] = {"name": name, "wanted": wanted, "choices_of": _choices(), "now": await _now(visit)}
        if wanted == WATCHED:
            return loaded(**data, keys=await admin.watched(name), looked=None, next=None)
        page = await admin.keys(name, wanted=wanted, after=visit.asked("after") or "", limit=PAGE_ROWS)
        next_page = urlencode({"after": page.next}) if page.next is not None else None
        return loaded(**data, keys=page.keys, looked=page.looked, next=next_page)

    async def failing() -> Loaded:
        found = await admin.failing(name)
        return loaded(
            name=name, reasons=[{**one, "words": reason_words(one["reason"])} for one in found], is_empty=not found
        )

    async def day() -> Loaded:
        hours = await admin.hours(name)
        return loaded(lines=day_lines(hours), is_empty=not any(one["done"] + one["refused"] for one in hours))

    async def definition() -> Loaded:
        return loaded(facts=definition_words(record), type=record)

    return [
        Panel("type", f"The type {name}", "type.html", now),
        Panel("keys", "Keys", "type_keys.html", keys),
        Panel(
            "failing",
            "Failing, by reason",
            "type_failing.html",
            failing,
            "No key is failing: the last attempt for each brought an answer.",
        ),
        Panel("day", "The last 24 hours", "type_day.html", day, "Nothing of this type was fetched in the last day."),
        Panel("definition", "What it is", "type_definition.html", definition),
    ]


async def pause(visit: Visit) -> Done:
    """Fetch nothing of this type, until it is resumed."""
    return await _pause(visit, paused=True)


async def resume(visit: Visit) -> Done:
    """Fetch it again; a parked type is asked for again too."""
    return await _pause(visit, paused=False)


async def _pause(visit: Visit, *, paused: bool) -> Done:
    name = visit.parts["name"]
    is_new = await TypeAdmin(visit.state.pools.operate).pause(name, paused=paused)
    visit.state.nudger.nudge(DUE)
    said = "is paused: nothing of it is fetched until it is resumed" if paused else "is fetched again"
    if not is_new:
        said = f"was {'paused already' if paused else 'neither paused nor parked'}: nothing was changed"
    return Done(f"{name} {said}.", f"/types/{quote(name, safe='')}")


def key_address(name: str, key: str) -> str:
    """The page of one key."""
    return f"/types/{quote(name, safe='')}/{quote(key, safe='')}"


def reason_words(reason: str) -> str:
    """What a word of the closed list means; nothing for another one."""
    return _MEANINGS.get(reason, "")


def day_lines(hours: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Three charts: refreshes, calls and bytes. An hour in which nobody counted calls is a gap."""
    at = [one["hour"].timestamp() for one in hours]
    refreshes = {"done": [one["done"] for one in hours], "refused": [one["refused"] for one in hours]}
    return [
        {
            "id": "day-refreshes",
            "title": "Refreshes an hour",
            "unit": "number",
            "top": None,
            "points": {"at": at, "lines": refreshes},
        },
        {
            "id": "day-calls",
            "title": "Calls an hour that were answered",
            "unit": "number",
            "top": None,
            "points": {"at": at, "lines": {"calls": [one["calls"] for one in hours]}},
        },
        {
            "id": "day-bytes",
            "title": "Bytes an hour, as the budget counts them",
            "unit": "size",
            "top": None,
            "points": {"at": at, "lines": {"bytes": [one["bytes"] for one in hours]}},
        },
    ]


_RULES = {
    "age": "when the last check is older than the TTL",
    "session": "when the last check is older than the TTL; outside the sessions of {calendar} a value from after the "
    "close stays fresh",
    "after_event": "when the last check is older than the TTL, and at once when the event of the value has passed",
}
_ROWS = {
    "one": "one row for each key",
    "set": "a set of rows for each key, replaced as a whole",
    "series": "a series of rows for each key: rows are added and updated, never removed",
}


def definition_words(record: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """(what, how it is written, value): text, span, size, number or instant."""
    facts: list[tuple[str, str, Any]] = [
        ("Fresh for (TTL)", "span", record["ttl_seconds"]),
        ("Goes stale", "text", _RULES[record["rule"]].format(calendar=record["calendar"])),
        ("Refreshed", "text", _strategy(record)),
        ("Next by schedule", "instant", record["cron_due_at"]),
        ("Lagging if the source is older than", "span", record["max_source_age_seconds"]),
        ("“There is no such key” is believed for", "span", record["negative_ttl_seconds"]),
        ("Keeps", "text", _ROWS[record["rows_kind"]]),
        ("Keys look like", "text", record["key_pattern"]),
        ("Keys in one call", "number", record["keys_max"]),
        ("Size of a key, by the file", "size", record["size_estimate"]),
        ("Worked by the pool", "text", record["pool"]),
        ("Version of the definition", "number", record["version"]),
        ("Applied", "instant", record["applied_at"]),
    ]
    return [fact for fact in facts if fact[2] is not None]


def _strategy(record: Mapping[str, Any]) -> str:
    if record["strategy"] == "scheduled":
        return f"by schedule {record['cron']}, {record['zone']}, whoever watches"
    return "while somebody watches" + (", and for a day after" if record["prefetch"] else "")


def _choices() -> list[tuple[str | None, str]]:
    """The filters of the list, and their words."""
    words: list[tuple[str | None, str]] = [(None, "all")]
    words += [(verdict, verdict) for verdict in VERDICTS]
    return [*words, ("own_ttl", "with a TTL of their own"), (WATCHED, "most watched")]


async def _now(visit: Visit) -> Mapping[str, int]:
    """Keys by verdict, of the sample; nothing if it cannot be read."""
    sample = await visit.state.looks.sampler.look()
    types = parts(sample.document, "refresh", "types")
    return next((one["keys"] for one in types if one["name"] == visit.parts["name"]), {})
