"""Is everything fresh? The state of the system at a glance, and the last hour as lines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from livewell.capability import Capability, capabilities, offered
from livewell.errors import LivewellError
from livewell.operations.state import failed_parts
from livewell.server.dashboard.pages.unjudged import unjudged
from livewell.server.dashboard.visit import Loaded, Panel, Visit, loaded
from livewell.server.findings import Diagnosis
from livewell.server.state_sampler import Sample, parts
from livewell.telemetry.measures import READINGS_PUSHED
from livewell.telemetry.system_state import Document

MINUTES = 60
_GOOD = ("fresh", "unverifiable")  # unverifiable: the source gives no time, and the value was fetched in time
_OLDEST_DUE = "SELECT data_type, key, seconds FROM livewell.oldest_due()"
_MINUTES = "SELECT minute, figures, newest FROM livewell.list_minutes(%s)"
_SILENT_SECONDS = 180.0  # without a point: workers are gone, not late


async def panels(visit: Visit) -> list[Panel]:
    """Freshness, what is wrong, types, limits, work; then what other capabilities add."""
    sampler = visit.state.looks.sampler

    async def fresh() -> Loaded:
        sample = await sampler.look()
        oldest = await visit.database.call_dicts(_OLDEST_DUE)
        pushed = {"n": READINGS_PUSHED.total(), "seconds": READINGS_PUSHED.seconds}
        figures = {**freshness(sample.document), "oldest": oldest[0] if oldest else None, "pushed": pushed}
        return of_sample(sample, "refresh", figures=figures, is_empty=not parts(sample.document, "refresh", "types"))

    async def wrong() -> Loaded:
        sample = await sampler.look()
        rules = [one for one in parts(sample.document, "alerts", "rules") if one["fired"]]
        diagnosis = visit.state.looks.findings.peek()
        known = {one["name"] for one in parts(sample.document, "schedules", "schedules")}
        late = [{**one, "known": one["name"] in known} for one in parts(sample.document, "schedules", "late")]
        lines = stuck_lines(sample.document, may_operate=visit.may_operate)
        lines += [] if failed_parts(sample.document).get("alerts") else unjudged(sample.document)
        found, unknown = doctor_counts(diagnosis), doctor_silence(diagnosis)
        is_empty = not (rules or late or lines or found or unknown)
        data = {"rules": rules, "late": late, "stuck": lines, "doctor": found, "doctor_silence": unknown}
        return of_sample(sample, None, is_empty=is_empty, **data)

    async def hour() -> Loaded:
        rows = await visit.database.call(_MINUTES, (MINUTES,))
        newest = rows[0][2] if rows else None
        return loaded(
            lines=hour_lines([(minute, figures) for minute, figures, _ in rows]),
            newest=newest,
            is_silent=newest is not None and (rows[-1][0] - newest).total_seconds() >= _SILENT_SECONDS,
            is_empty=newest is None,
        )

    async def types() -> Loaded:
        sample = await sampler.look()
        found = types_of(sample.document)
        return of_sample(sample, "refresh", types=found[:10], others=max(0, len(found) - 10), is_empty=not found)

    async def limits() -> Loaded:
        sample = await sampler.look()
        found = [one for one in parts(sample.document, "limits", "limiters") if one["active"]]
        return of_sample(sample, "limits", limiters=found[:10], is_empty=not found)

    async def work() -> Loaded:
        sample = await sampler.look()
        queues, workers = parts(sample.document, "queue", "queues"), parts(sample.document, "queue", "workers")
        return of_sample(sample, "queue", queues=queues, workers=workers, is_empty=not queues)

    ours = [
        Panel("fresh", "Freshness", "overview_fresh.html", fresh, "No type is applied yet: livewell types apply FILE"),
        Panel("wrong", "Wrong now", "overview_wrong.html", wrong, "Nothing: no alert fires, nothing is late or stuck."),
        Panel(
            "hour",
            "The last hour",
            "overview_hour.html",
            hour,
            "A worker keeps a point each minute, and none was kept yet. Start one with: livewell worker",
        ),
        Panel("types", "Types, the least fresh first", "overview_types.html", types, "No type is applied.", wide=False),
        Panel("limits", "Limits", "overview_limits.html", limits, "No upstream has a limit.", wide=False),
        Panel("work", "Work", "overview_work.html", work, "No queue is declared yet.", wide=False),
    ]
    added = await asyncio.gather(*(added_panels(one, visit) for one in capabilities() if one.overview is not None))
    return [*ours, *(panel for several in added for panel in several)]


async def added_panels(one: Capability, visit: Visit) -> Sequence[Panel]:
    """What a capability adds to the first page. If it cannot say, one panel of it has failed."""
    try:
        found: Sequence[Panel] = await one.load("overview", one.overview or "")(visit)
    except Exception as error:  # noqa: BLE001 - painting the panel logs it, and the page says so
        failure = error

        async def fail() -> Loaded:
            raise failure

        return [Panel(f"overview-{one.name}", one.name.capitalize(), "overview_work.html", fail)]
    return found


def of_sample(sample: Sample, part: str | None, *, is_empty: bool = False, **data: Any) -> Loaded:
    """Data of a panel that comes from the state. A part that could not be read has failed.

    how: exact or estimated; sampled_at: when the figures that may be estimated were looked at, which
    is up to ten seconds before the rest.
    """
    broken = failed_parts(sample.document).get(part or "")
    if broken is not None:
        raise LivewellError(broken)
    known = sample.document.get(part or "")
    how, sampled_at = (known.get("how"), known.get("sampled_at")) if isinstance(known, dict) else (None, None)
    return Loaded(
        {"how": how, "sampled_at": sampled_at, **data},
        sample.at,
        sample.error,
        is_empty=is_empty and sample.error is None,
    )


def stuck_lines(document: Document, *, may_operate: bool) -> list[str]:
    """What stands still, in few words each. Alerts that fire and schedules that are late have lines of their own."""
    others = {**document, "alerts": _without(document, "alerts", "rules")}
    others["schedules"] = _without(document, "schedules", "late")
    said = [line for _, lines in offered("stuck") for line in lines(others)]
    for name, error in failed_parts(document).items():
        said.append(f"the part {name} could not be read" + (f": {error}" if may_operate else ""))
    return said


def _without(document: Document, name: str, items: str) -> object:
    """A part of the state without one of its lists."""
    found = document.get(name)
    return {**found, items: []} if isinstance(found, dict) else found


def doctor_silence(diagnosis: Diagnosis | None) -> str:
    """Why the doctor's findings are not all there; nothing if they are."""
    if diagnosis is None:
        return "has not answered yet"
    return "" if diagnosis.error is None else f"could not examine everything: {diagnosis.error}"


def doctor_counts(diagnosis: Diagnosis | None) -> list[tuple[str, int]]:
    """How many findings of each level the doctor has, the most severe first."""
    levels = Counter(one.level for one in diagnosis.findings) if diagnosis is not None else Counter()
    return sorted(levels.items())


def types_of(document: Document) -> list[dict[str, Any]]:
    """Types with their shares, the least fresh first; types without keys last."""
    found = [with_shares(one) for one in parts(document, "refresh", "types")]
    return sorted(found, key=lambda one: (one["fresh_share"] is None, one["fresh_share"] or 0, one["name"]))


def with_shares(one: dict[str, Any]) -> dict[str, Any]:
    """A type with the number of its followed keys, and the shares that are fresh."""
    return {
        **one,
        "followed": sum(n for verdict, n in one["keys"].items() if verdict != "parked"),
        "fresh_share": _share(one["keys"]),
        "viewed_share": _share(one["viewed"]),
    }


def freshness(document: Document) -> dict[str, Any]:
    """The figures of the whole system."""
    types = parts(document, "refresh", "types")
    due = parts(document, "refresh", "due")
    refresh = document.get("refresh")
    known = refresh if isinstance(refresh, dict) else {}
    return {
        "viewed_share": _share(*(one["viewed"] for one in types)),
        "fresh_share": _share(*(one["keys"] for one in types)),
        "due": sum(one["keys"] for one in due),
        "oldest_seconds": max((one["oldest_seconds"] or 0 for one in due), default=0) or None,
        "viewers": known.get("viewers"),
        "refreshed": sum(one["refreshed"] for one in types),
        "refused": sum(one["refused"] for one in types),
    }


def _share(*verdicts: dict[str, int]) -> float | None:
    """The share of followed keys that is fresh; None if there are none."""
    followed = [(verdict, n) for one in verdicts for verdict, n in one.items() if verdict != "parked"]
    total = sum(n for _, n in followed)
    return sum(n for verdict, n in followed if verdict in _GOOD) / total if total else None


def hour_lines(rows: Sequence[tuple[Any, dict[str, Any] | None]]) -> list[dict[str, Any]]:
    """Three charts: freshness, jobs that wait, jobs that end. A minute without figures is a gap in each."""
    at = [minute.timestamp() for minute, _ in rows]

    def line(name: str) -> list[float | None]:
        return [figures.get(name) if figures else None for _, figures in rows]

    def share(part: str, whole: str) -> list[float | None]:
        return [a / b if a is not None and b else None for a, b in zip(line(part), line(whole), strict=True)]

    return [
        {
            "id": "line-fresh",
            "title": "Fresh",
            "unit": "share",
            "top": 1,
            "points": {
                "at": at,
                "lines": {"by viewers": share("viewed_fresh", "viewed"), "keys": share("fresh", "keys")},
            },
        },
        {
            "id": "line-waiting",
            "title": "Waiting",
            "unit": "number",
            "top": None,
            "points": {"at": at, "lines": {"jobs": line("waiting"), "due keys": line("due")}},
        },
        {
            "id": "line-done",
            "title": "Jobs that ended, a minute",
            "unit": "number",
            "top": None,
            "points": {"at": at, "lines": {"succeeded": line("done"), "other": line("failed")}},
        },
    ]
