"""What is being made? The queue of exports, failures by reason, who renders, whose files take the room.

Nothing here comes from a document: no names, no titles, no options (E15). Who the users are is for
operators alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from livewell.exports.model import REASONS
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.pages.queues import Trouble
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts
from livewell.telemetry.system_state import Document, part
from livewell.words import number, span

STATES = ("waiting", "running", "finished", "failed", "cancelled", "deleted", "expired")
TONES = {"finished": "fresh", "failed": "bad"}
LATE_SECONDS = 300.0  # as the alert rule
_FIND = "SELECT * FROM livewell.find_exports(%s, %s, NULL, %s)"
NOTHING = "Nothing was exported in the last hour, and nothing waits."
NO_RENDERER = "No worker renders. Start one with: livewell worker"


async def panels(visit: Visit) -> list[Panel]:
    """Now, failures, who renders, whose files, and the newest exports."""
    sampler = visit.state.looks.sampler
    only = visit.asked("state", among=STATES)

    async def now() -> Loaded:
        sample = await sampler.look()
        found = part(sample.document, "exports")
        return of_sample(sample, "exports", **_figures(found))

    async def reasons() -> Loaded:
        sample = await sampler.look()
        found = parts(sample.document, "exports", "reasons")
        told = [{**one, "words": REASONS.get(one["reason"] or "", "")} for one in found]
        return of_sample(sample, "exports", reasons=told, is_empty=not found)

    async def renderers() -> Loaded:
        sample = await sampler.look()
        found = [{**one, "trouble": trouble(one)} for one in parts(sample.document, "exports", "renderers")]
        return of_sample(sample, "exports", renderers=found[:PAGE_ROWS], is_empty=not found)

    async def users() -> Loaded:
        sample = await sampler.look()
        found = parts(sample.document, "exports", "largest")
        return of_sample(sample, "exports", users=found, is_empty=not found)

    async def exports() -> Loaded:
        rows = await visit.database.call_dicts(_FIND, (only, None, PAGE_ROWS))
        tabs = [("/exports", "all", None, only is None)]
        tabs += [(f"/exports?state={one}", one, None, one == only) for one in STATES]
        return loaded(exports=rows, tabs=tabs, tones=TONES)

    shown = [
        Panel("now", "Now, and the last hour", "exports_now.html", now),
        Panel("renderers", "Who renders", "exports_renderers.html", renderers, NO_RENDERER),
        Panel(
            "reasons",
            "Failures of the last hour",
            "exports_reasons.html",
            reasons,
            "No export failed within the hour.",
            wide=False,
        ),
    ]
    if visit.may_operate:
        empty = "Nobody has a file here."
        shown.append(Panel("users", "Whose files take the most", "exports_users.html", users, empty, wide=False))
        shown.append(Panel("exports", "Exports, the newest first", "exports_list.html", exports))
    return shown


async def overview(visit: Visit) -> list[Panel]:
    """A panel on the first page."""

    async def load() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = part(sample.document, "exports")
        return of_sample(sample, "exports", **_figures(found), is_empty=_is_idle(sample.document))

    return [Panel("exports", "Exports", "overview_exports.html", load, NOTHING, wide=False)]


def trouble(one: Mapping[str, Any]) -> Trouble:
    """What is wrong with a worker that renders; else what it does."""
    if one["seen_seconds"] > 60:
        return Trouble(f"silent for {span(one['seen_seconds'])}", "bad")
    if one["store_reason"]:
        return Trouble(f"the store does not answer for {span(one['store_seconds'])}", "bad")
    if one["spare_deaths"]:
        return Trouble(f"{number(one['spare_deaths'])} children died without a document", "bad")
    if one["bytes_max"] and one["rss_bytes"] + one["children_bytes"] >= 0.8 * one["bytes_max"]:
        return Trouble("near its bound of memory", "warn")
    return Trouble("renders" if one["renders"] else "ready", "fresh" if one["renders"] else "none")


def _figures(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a panel shows of the state; zeros where the part could not be read are the sampler's to say."""
    hour, usage, cleanup = found.get("hour") or {}, found.get("usage") or {}, found.get("cleanup") or {}
    oldest = found.get("oldest_seconds")
    return {
        "waiting": found.get("waiting", 0),
        "retrying": found.get("retrying", 0),
        "running": found.get("running", 0),
        "oldest_seconds": oldest,
        "is_late": oldest is not None and oldest > LATE_SECONDS,
        "hour": hour,
        "usage": usage,
        "cleanup": cleanup,
    }


def _is_idle(document: Document) -> bool:
    found = part(document, "exports")
    figures = _figures(found)
    hour = figures["hour"]
    busy = figures["waiting"] + figures["retrying"] + figures["running"]
    return not busy and not hour.get("finished") and not hour.get("failed")
