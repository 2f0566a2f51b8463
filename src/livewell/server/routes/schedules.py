"""Schedules and their runs, for operators; and what is late, for an outside watchdog (R24, S5).

Errors of runs may hold anything, so nobody else sees them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel
from starlette.responses import Response

from livewell.errors import LivewellError
from livewell.schedule.admin import Outcome, ScheduleAdmin
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, cursor, page
from livewell.server.answers.problems import not_found
from livewell.server.depends import Operator, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page, cursor_place

log = structlog.get_logger("livewell.server")
router = APIRouter(prefix="/v1", tags=["schedules"])
health = APIRouter(include_in_schema=False)

Name = Annotated[str, Path(max_length=100, description="The name of a schedule.")]
Ended = Annotated[Outcome | None, Query(description="Only runs that ended so; failed: also those that crashed.")]


class Asked(BaseModel):
    """Whether somebody will run it.

    nobody: no worker that has its handler was here for a minute, and it waits for one.
    """

    answer: Literal["asked", "nobody"]


@router.get("/schedules", response_model=Page)
async def schedules(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Every schedule and every loop by name: the latest run, the next slot, and whether it is late."""
    begin = cursor_place(after)
    rows = [row for row in await _schedules(state).schedules() if row["name"] > begin][:limit]
    return JsonAnswer(page(rows, limit, rows[-1]["name"] if rows else None))


@router.post("/schedules/{name}/run", response_model=Asked, status_code=202)
async def run(state: TheState, caller: Operator, name: Name) -> Any:  # noqa: ARG001 - the scope is the point
    """Ask for a run now, beside the slots."""
    _check(name)
    return JsonAnswer({"answer": await _schedules(state).ask(name)}, 202)


@router.post("/schedules/{name}/pause", status_code=204)
async def pause(state: TheState, caller: Operator, name: Name) -> Response:  # noqa: ARG001 - the scope is the point
    """Begin no more runs; what runs may end."""
    _check(name)
    await _schedules(state).pause(name)
    return Response(status_code=204)


@router.post("/schedules/{name}/resume", status_code=204)
async def resume(state: TheState, caller: Operator, name: Name) -> Response:  # noqa: ARG001 - the scope is the point
    """Begin runs again."""
    _check(name)
    await _schedules(state).pause(name, paused=False)
    return Response(status_code=204)


@router.get("/runs", response_model=Page)
async def runs(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    outcome: Ended = None,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Runs of all schedules, the newest first."""
    return await _runs(state, None, outcome, limit, after)


@router.get("/runs/{name}", response_model=Page)
async def history(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    name: Name,
    outcome: Ended = None,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Runs of one schedule, the newest first; also of one that is gone."""
    _check(name)
    return await _runs(state, name, outcome, limit, after)


@health.get("/health/schedules")
async def late(state: TheState) -> JsonAnswer:
    """200 when everything that is due has run; 503 with the names of what is late.

    Without login: names and seconds, nothing else.
    """
    if state.stopping.is_set():
        return JsonAnswer({"ok": False, "late": []}, 503)
    try:
        found = await state.lateness.look()
    except LivewellError as error:
        log.warning("lateness is not known", error=str(error))
        return JsonAnswer({"ok": False, "late": []}, 503)
    return JsonAnswer({"ok": not found, "late": found}, 503 if found else 200, {"Cache-Control": "no-store"})


async def _runs(
    state: ServerProcess, name: str | None, outcome: str | None, limit: int, after: str | None
) -> JsonAnswer:
    """A page; by outcome it may be short, and even empty, while there are more."""
    before = id_place(after)
    if outcome is None:
        rows = await _schedules(state).runs(name, before=before, limit=limit)
        return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))
    rows, following = await _schedules(state).runs_that(outcome, name, before=before, limit=limit)
    return JsonAnswer({"items": rows, "next": None if following is None else cursor(following)})


def _check(name: str) -> None:
    if "\x00" in name:
        raise not_found()


def _schedules(state: ServerProcess) -> ScheduleAdmin:
    return ScheduleAdmin(state.pools.operate, state.nudger)
