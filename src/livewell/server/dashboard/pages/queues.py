"""What is running, what is stuck? Queues with trouble first, why jobs wait, and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from livewell.queue.admin import QueueAdmin
from livewell.queue.stuck import LONG_SECONDS
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts
from livewell.telemetry.system_state import Document
from livewell.words import number, span

QUEUES_LISTED_MAX = 1000  # in the state of the system
_FAILING_SHARE = 0.1  # of what ends: more is trouble
_RANKS = {"bad": 0, "warn": 1, "fresh": 2, "none": 3}
_LIMITS = {  # what a limiter waits for, and how bad that is
    "rate": ("the rate of their limiter is used up", "warn"),
    "budget": ("the budget of their limiter is used up", "bad"),
    "breaker": ("the breaker of their limiter is open", "bad"),
    "probe": ("the breaker of their limiter is half open", "bad"),
    "upstream": ("the upstream asked for silence", "warn"),
    "restart": ("the database was restarted, and workers report first", "warn"),
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a queue, in few words; the tone says how bad it is."""

    words: str
    tone: str


@dataclass(slots=True)
class Reason:
    """Why jobs wait, and how many do. is_least: that many at least, because a sample has seen none of some."""

    words: str
    tone: str
    to: str
    link: str
    jobs: int = 0
    queues: int = 0
    is_least: bool = False


async def panels(visit: Visit) -> list[Panel]:
    """Why jobs wait, a look-up, queues, workers."""
    sampler = visit.state.looks.sampler
    name = visit.asked("name")

    async def waiting() -> Loaded:
        sample = await sampler.look()
        queues = parts(sample.document, "queue", "queues")
        return of_sample(
            sample,
            "queue",
            totals=totals(queues),
            reasons=waiting_reasons(sample.document),
            is_part=len(queues) >= QUEUES_LISTED_MAX,
            is_empty=not queues,
        )

    async def look() -> Loaded:
        return loaded(name=name or "")

    async def queues() -> Loaded:
        if name is not None:
            sample = await sampler.look()
            limits = _limiters(sample.document)
            rows = [with_trouble(one, limits) for one in await admin(visit).find_queues(name, limit=PAGE_ROWS)]
            return of_sample(sample, "queue", queues=rows, name=name, next=None, is_part=False, is_empty=not rows)
        sample = await sampler.look()
        rows = by_trouble(sample.document)
        begin = _begin(visit)
        following = begin + PAGE_ROWS if len(rows) > begin + PAGE_ROWS else None
        is_part = len(rows) >= QUEUES_LISTED_MAX
        shown = rows[begin : begin + PAGE_ROWS]
        return of_sample(sample, "queue", queues=shown, name=None, next=following, is_part=is_part, is_empty=not shown)

    async def workers() -> Loaded:
        sample = await sampler.look()
        found = parts(sample.document, "queue", "workers")
        worst = sorted(found, key=lambda one: (not one["lacks"], one["lease_left_seconds"] > 0, one["name"]))
        others = max(0, len(found) - PAGE_ROWS)
        return of_sample(sample, "queue", workers=worst[:PAGE_ROWS], others=others, is_empty=not found)

    nothing = (
        f"No queue's name begins with {name}."
        if name
        else "No queue is declared yet: a worker declares its queues when it starts."
    )
    return [
        Panel("waiting", "Why jobs wait", "waiting.html", waiting, "No queue is declared yet.", wide=False),
        Panel("look", "Find", "work_look.html", look, wide=False),
        Panel("queues", "Queues, the ones with trouble first", "queues.html", queues, nothing),
        Panel("workers", "Workers", "workers.html", workers, "No worker runs. Start one with: livewell worker"),
    ]


async def pause(visit: Visit) -> Done:
    """Claim nothing more from a queue; what runs may end."""
    name = visit.parts["name"]
    if not await acting(visit).pause(name, paused=True):
        return Done(f"{name} was paused already: nothing was changed.", _back(visit))
    return Done(f"{name} is paused: what runs may end, nothing more is begun.", _back(visit))


async def resume(visit: Visit) -> Done:
    """Claim from it again."""
    name = visit.parts["name"]
    is_new = await acting(visit).pause(name, paused=False)
    return Done(f"{name} {'goes on' if is_new else 'was not paused: nothing was changed'}.", _back(visit))


def admin(visit: Visit) -> QueueAdmin:
    """For looking."""
    return QueueAdmin(visit.database, visit.state.nudger)


def acting(visit: Visit) -> QueueAdmin:
    """For acts."""
    return QueueAdmin(visit.state.pools.operate, visit.state.nudger)


def totals(queues: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of all queues together."""
    names = ("ready", "running", "delayed", "held", "dead", "done_per_minute", "other_per_minute")
    return {name: sum(one[name] for one in queues) for name in names}


def by_trouble(document: Document) -> list[dict[str, Any]]:
    """Queues with what is wrong with each, from exact facts and no sample: the worst first, then those that wait longest."""
    limits = _limiters(document)
    found = [with_trouble(one, limits) for one in parts(document, "queue", "queues")]
    return sorted(
        found, key=lambda one: (_RANKS[one["trouble"].tone], -(one["oldest_ready_seconds"] or 0), one["name"])
    )


def with_trouble(one: Mapping[str, Any], limits: Mapping[str, str]) -> dict[str, Any]:
    """A queue with the first thing that is wrong with it."""
    return {**one, "trouble": _trouble(one, limits)}


def _trouble(one: Mapping[str, Any], limits: Mapping[str, str]) -> Trouble:
    waits = one["oldest_ready_seconds"] or 0
    ended = one["done_per_minute"] + one["other_per_minute"]
    blocked = limits.get(one["limiter"] or "")
    if one["paused_at"]:
        return Trouble("paused, and jobs wait" if one["has_ready"] else "paused", "warn")
    if one["has_ready"] and not one["workers"]:
        return Trouble("no worker works it", "bad")
    if one["has_ready"] and blocked:
        return Trouble(f"stopped: {blocked}", _LIMITS.get(blocked, ("", "warn"))[1])
    if waits > LONG_SECONDS:
        return Trouble(f"the first waits {span(waits)}", "bad")
    if ended and one["other_per_minute"] / ended > _FAILING_SHARE:
        return Trouble(f"{number(one['other_per_minute'])} fail a minute", "warn")
    return Trouble("works" if ended or one["running"] else "idle", "fresh" if ended or one["running"] else "none")


def waiting_reasons(document: Document) -> list[Reason]:
    """Why jobs wait, counted: the worst first, then the most jobs. Jobs that wait for nothing are in line."""
    found: dict[str, Reason] = {}
    for reason, jobs in _waiting(document):
        kept = found.setdefault(reason.words, reason)
        kept.jobs += max(jobs, 1)
        kept.is_least |= jobs == 0
        kept.queues += 1
    return sorted(found.values(), key=lambda one: (_RANKS[one.tone], -one.jobs))


def _waiting(document: Document) -> Iterator[tuple[Reason, int]]:
    limits = _limiters(document)
    for one in parts(document, "queue", "queues"):
        if one["has_ready"]:
            yield _ready_reason(one, limits.get(one["limiter"] or "")), one["ready"]
        if one["delayed"]:
            yield Reason("their time has not come", "none", "/work/jobs?state=delayed", "Delayed jobs"), one["delayed"]
        if one["held"]:
            words = "another job has their key, or their group is full"
            yield Reason(words, "none", "/work/jobs?state=held", "Held jobs"), one["held"]


def _ready_reason(one: Mapping[str, Any], blocked: str | None) -> Reason:
    if one["paused_at"]:
        return Reason("their queue is paused", "warn", "#queues", "Resume it")
    if not one["workers"]:
        return Reason("no worker works their queue", "bad", "#workers", "Workers")
    if blocked:
        words, tone = _LIMITS.get(blocked, (f"their limiter says {blocked}", "warn"))
        return Reason(words, tone, "/limits", "Limits")
    if one["concurrency"] and one["running"] >= one["concurrency"]:
        return Reason("as many run as their queue may", "none", "/work/jobs?state=running", "Running jobs")
    return Reason("they are in line for a free worker", "none", "/work/jobs?state=ready&order=oldest", "Ready jobs")


def _limiters(document: Document) -> dict[str, str]:
    """Limiters of which no credential may call now, and what they wait for."""
    found: dict[str, list[str | None]] = {}
    for one in parts(document, "limits", "limiters"):
        if one["active"]:
            found.setdefault(one["name"], []).append(None if one["calls_now"] else one["waits_for"])
    return {name: str(waits[0]) for name, waits in found.items() if all(waits)}


def _begin(visit: Visit) -> int:
    """Which of the listed queues comes first on this page."""
    text = visit.query.get("from", "")
    return min(int(text), QUEUES_LISTED_MAX) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _back(visit: Visit) -> str:
    """To the page of the job from which it was done, or to the queues."""
    job = visit.form.get("job", "")
    return f"/work/jobs/{job}" if job.isascii() and job.isdigit() and len(job) < 20 else "/work"
