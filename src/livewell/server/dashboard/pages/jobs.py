"""Which jobs are there? A filter that the address holds, and keyset pages of a bounded look."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import quote, urlencode

from livewell.errors import InvalidOption
from livewell.model import JobState
from livewell.queue.admin import COUNT_MAX, LOOK_ROWS, JobCount, JobPage
from livewell.queue.job_filter import IN_HISTORY, LIVE, JobFilter
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.pages.act_query import at_rest
from livewell.server.dashboard.pages.queues import admin
from livewell.server.dashboard.visit import PAGE_ROWS, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts
from livewell.words import number

ORDERS = {"newest": "newest first", "oldest": "oldest first"}
_SUGGESTED_MAX = 100
_NOTHING = "No job matches. Look at jobs that ended with another state, or leave a part of the filter out."


async def panels(visit: Visit) -> list[Panel] | Elsewhere:
    """The filter, and one page of what matches."""
    if any(not value.strip() for value in visit.query.values()):
        return Elsewhere(_address({name: value for name, value in visit.query.items() if value.strip()}))
    order = visit.asked("order", among=tuple(ORDERS)) or "newest"

    async def filters() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        names = [one["name"] for one in parts(sample.document, "queue", "queues")]
        asked = {name: visit.asked(name) or "" for name in JobFilter.__dataclass_fields__}
        return loaded(asked=asked, order=order, orders=ORDERS, states=_states(), queues=names[:_SUGGESTED_MAX])

    async def found() -> Loaded:
        wanted = JobFilter.from_query(visit.query)
        is_newest = order == "newest"
        looking = admin(visit).find(wanted, after=visit.after, newest=is_newest, limit=PAGE_ROWS)
        page, count = await asyncio.gather(looking, admin(visit).count(wanted))
        query = {**wanted.to_query(), **({} if is_newest else {"order": order})}
        return loaded(
            jobs=page.rows,
            is_live=wanted.is_live,
            count=count_words(count),
            looked=_looked(page),
            first=_address(query) if visit.after else None,
            next=None if page.next is None else _address({**query, "after": cursor(page.next)}),
            look_rows=LOOK_ROWS,
            bulk_filter=acted_on(await at_rest(visit.database, wanted)),
            bulk_actions=_actions(wanted),
            is_empty=not page.rows and page.next is None,
        )

    return [
        Panel("filter", "Which jobs", "jobs_filter.html", filters),
        Panel("jobs", _title(visit), "jobs.html", found, _NOTHING if not visit.after else "No more jobs match."),
    ]


async def look(visit: Visit) -> Elsewhere:
    """A job by the id that somebody typed."""
    return Elsewhere(f"/work/jobs/{quote(visit.asked('id') or '0', safe='')}")


def count_words(count: JobCount) -> str:
    """How many match: exact to 10,000; beyond that, and beyond the look, it says so."""
    jobs = "job matches" if count.n == 1 else "jobs match"
    if count.is_all:
        return f"{number(count.n)} {jobs}"
    if count.n >= COUNT_MAX:
        return f"{number(COUNT_MAX)}+ jobs match"
    return f"at least {number(count.n)} {jobs}: {number(count.n)} of the newest {number(count.looked)}"


def _looked(page: JobPage) -> int | None:
    """How many were looked at, if the look ended before the page was full."""
    return page.looked if page.next is not None and len(page.rows) < PAGE_ROWS else None


def _states() -> list[tuple[str, tuple[str, ...]]]:
    """For the select: states by what they have in common."""
    return [("Not ended", LIVE), ("Ended", (*IN_HISTORY, "failed"))]


def acted_on(wanted: JobFilter) -> dict[str, str]:
    """The filter of an act. One on dead letters has no state: they have only one."""
    return (replace(wanted, state=None) if wanted.state == JobState.FAILED.value else wanted).to_query()


def _actions(wanted: JobFilter) -> list[tuple[str, str]]:
    """What can be done to all that match: to live jobs, and to dead letters as on their own page."""
    if wanted.state == JobState.FAILED.value:
        return [("redrive", "Retry all that match"), ("discard", "Discard all that match")]
    if not wanted.is_live:
        return []
    hasten = [("hasten", "Run all that match now")] if wanted.state == "delayed" else []
    return [*hasten, ("cancel", "Cancel all that match")]


def _title(visit: Visit) -> str:
    try:
        state = JobFilter.from_query(visit.query).state
    except InvalidOption:
        return "Jobs"
    return f"{state.capitalize()} jobs" if state else "Jobs that have not ended"


def _address(query: dict[str, str]) -> str:
    return f"/work/jobs?{urlencode(query)}" if query else "/work/jobs"
