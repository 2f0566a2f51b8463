"""What ran when? Schedules, late ones first; the runs of all, and of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from livewell.errors import UnknownSchedule
from livewell.schedule.admin import OUTCOMES, ScheduleAdmin
from livewell.schedule.cron_words import rule_words
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded

FAILED_SHOWN = 10
RUNS_DRAWN = 20
TONES = {"succeeded": "fresh", "running": "none", "skipped": "warn", "failed": "bad", "crashed": "bad"}

Record = dict[str, Any]


async def panels(visit: Visit) -> list[Panel]:
    """Every schedule, and the runs that failed last."""

    async def schedules() -> Loaded:
        found = [_described(one) for one in await admin(visit).schedules()]
        # Work of Livewell itself is of interest when it is late.
        ours = [one for one in found if one["internal"] and not one["late"]]
        shown = sorted((one for one in found if one not in ours), key=_place)
        page = [one for one in shown if _place(one) > visit.text_after][:PAGE_ROWS]
        recent = await admin(visit).recent([one["name"] for one in (*page, *ours) if one["kind"] != "loop"])
        for one in (*page, *ours):
            one["bars"], one["bars_words"] = bars(recent.get(one["name"], ()))
        following = cursor(_place(page[-1])) if page and _place(page[-1]) < _place(shown[-1]) else None
        return loaded(schedules=page, ours=ours, next=following, is_empty=not found)

    async def failed() -> Loaded:
        found, _ = await admin(visit).runs_that("failed", limit=FAILED_SHOWN)
        return loaded(runs=found, all_schedules=True, tones=TONES, is_empty=not found)

    return [
        Panel(
            "schedules",
            "Schedules, late ones first",
            "schedules.html",
            schedules,
            "Nothing is scheduled: schedules appear when a worker starts. Start one with: livewell worker",
        ),
        Panel("failed", "Failed last", "runs_failed.html", failed, "No run of late has failed or crashed."),
    ]


async def all_runs(visit: Visit) -> list[Panel]:
    """The runs of all schedules, the newest first."""
    return [_runs_panel(visit, None, "Runs of all schedules")]


async def one_schedule(visit: Visit) -> list[Panel]:
    """One schedule: its rule, its state, and its runs, the newest first."""
    name = visit.parts["name"]
    found = next((_described(one) for one in await admin(visit).schedules() if one["name"] == name), None)
    if found is None and not await admin(visit).runs(name, limit=1):
        raise UnknownSchedule(f"there is no schedule {name!r}, and no run of one")

    async def facts() -> Loaded:
        if found is None:
            return loaded(is_empty=True)
        recent = await admin(visit).recent([name])
        drawn, words = bars(recent.get(name, ()))
        return loaded(one={**found, "bars": drawn, "bars_words": words})

    gone = "It is not scheduled any more; its history stays for 30 days."
    return [
        Panel("schedule", name, "schedule.html", facts, gone),
        _runs_panel(visit, name, "Runs"),
    ]


def _runs_panel(visit: Visit, name: str | None, title: str) -> Panel:
    outcome = visit.asked("outcome", among=tuple(OUTCOMES))

    async def runs() -> Loaded:
        runs_of = admin(visit)
        if outcome is None:
            found = await runs_of.runs(name, before=visit.after, limit=PAGE_ROWS)
            following = found[-1]["id"] if len(found) == PAGE_ROWS else None
        else:
            found, following = await runs_of.runs_that(outcome, name, before=visit.after, limit=PAGE_ROWS)
        return loaded(
            runs=found,
            next=None if following is None else cursor(following),
            outcome=outcome,
            outcomes=list(OUTCOMES),
            all_schedules=name is None,
            tones=TONES,
        )

    return Panel("runs", title, "runs.html", runs)


async def run(visit: Visit) -> Done:
    """Ask for a run now, beside the slots."""
    answer = await _acting(visit).ask(visit.parts["name"])
    waits = " No worker that has it was here for a minute: it waits for one." if answer == "nobody" else ""
    return Done(f"A run of {visit.parts['name']} is asked for.{waits}", _back(visit))


async def pause(visit: Visit) -> Done:
    """Begin no more runs; what runs may end."""
    is_new = await _acting(visit).pause(visit.parts["name"])
    said = "is paused: slots that come are skipped" if is_new else "was paused already: nothing was changed"
    return Done(f"{visit.parts['name']} {said}.", _back(visit))


async def resume(visit: Visit) -> Done:
    """Begin runs again."""
    is_new = await _acting(visit).pause(visit.parts["name"], paused=False)
    said = "goes on with its next slot" if is_new else "was not paused: nothing was changed"
    return Done(f"{visit.parts['name']} {said}.", _back(visit))


def bars(recent: Sequence[tuple[str, float | None]]) -> tuple[list[tuple[float, str]], str]:
    """The latest runs as bars of their durations, and the same in words."""
    drawn = [(seconds or 0.0, {"succeeded": "none"}.get(state, TONES[state])) for state, seconds in recent]
    if not recent:
        return [], ""
    counted = {state: sum(one == state for one, _ in recent) for state in TONES}
    return drawn, "The latest runs: " + ", ".join(f"{n} {state}" for state, n in counted.items() if n)


def _described(one: Record) -> Record:
    """A row of the list with its rule in words, and how long the last run took."""
    started, finished = one["last_started_at"], one["last_finished_at"]
    return {
        **one,
        "words": rule_words(one["kind"], one["rule"], one["zone"]),
        "took": (finished - started).total_seconds() if started and finished else None,
        "tone": TONES.get(one["last_state"] or "", "none"),
    }


def _place(one: Record) -> str:
    """Where it stands in the list: late ones first, then by name."""
    return f"{'0' if one['late'] else '1'}{one['name']}"


def _back(visit: Visit) -> str:
    return f"/schedules/{quote(visit.parts['name'], safe='')}"


def admin(visit: Visit) -> ScheduleAdmin:
    """For looking."""
    return ScheduleAdmin(visit.database, visit.state.nudger)


def _acting(visit: Visit) -> ScheduleAdmin:
    return ScheduleAdmin(visit.state.pools.operate, visit.state.nudger)
