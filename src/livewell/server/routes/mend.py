"""What operators do to upstreams and singletons, and what was done by whom (R25).

Each act is recorded with its caller.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from livewell.operations.audit import Audit, Filters
from livewell.operations.mend import Closed, Mender, Probed, Resumed, Taken
from livewell.refresh.nudges import DUE
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, cursor
from livewell.server.answers.problems import not_found
from livewell.server.depends import Operator, TheState
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page

router = APIRouter(prefix="/v1", tags=["operations"])

Text = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]
Time = Annotated[
    str | None, Query(max_length=40, description="A time ago, as 2h, or an instant; UTC unless it names a zone.")
]
Action = Annotated[
    str | None, Query(max_length=100, pattern=r"^[^\x00]*$", description="As queues.pause, or of a kind: queues.")
]
Name = Annotated[str, Path(max_length=100, description="The name of an upstream, or of a singleton.")]


class ResumedDocument(BaseModel):
    """resumed; not_stopped: it was neither silent nor paused."""

    answer: Resumed


class OneCredential(BaseModel):
    """Which credential; all, if none is given."""

    model_config = ConfigDict(extra="forbid")

    credential: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None


class ProbedDocument(BaseModel):
    """What became of the wish to probe.

    closed: nothing to probe.
    """

    answer: Probed


class ClosedDocument(BaseModel):
    """closed; was_closed already."""

    answer: Closed


class Take(BaseModel):
    """force: also from a holder that lives."""

    model_config = ConfigDict(extra="forbid")

    force: bool = False


class TakenDocument(BaseModel):
    """taken; alive: its holder lives, and nothing was done; free: nobody holds it."""

    answer: Taken


@router.post("/upstreams/{name}/resume", response_model=ResumedDocument)
async def resume(state: TheState, caller: Operator, name: Name) -> Any:  # noqa: ARG001 - the scope is the point
    """End the silence that it asked for, and a pause."""
    answer = await Mender(state.pools.operate).resume(_checked(name))
    state.nudger.nudge(DUE)
    return JsonAnswer({"answer": answer})


@router.post("/upstreams/{name}/probe", response_model=ProbedDocument)
async def probe(state: TheState, caller: Operator, name: Name, body: OneCredential | None = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Let one call try now whether it is back."""
    answer = await Mender(state.pools.operate).probe(_checked(name), credential=body.credential if body else None)
    state.nudger.nudge(DUE)
    return JsonAnswer({"answer": answer})


@router.post("/upstreams/{name}/close", response_model=ClosedDocument)
async def close(state: TheState, caller: Operator, name: Name, body: OneCredential | None = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Close its breaker: all calls are allowed again."""
    answer = await Mender(state.pools.operate).close(_checked(name), credential=body.credential if body else None)
    state.nudger.nudge(DUE)
    return JsonAnswer({"answer": answer})


@router.get("/singletons", response_model=Page)
async def singletons(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """Who holds which singleton, by name; all of them, there are few."""
    return JsonAnswer({"items": await Mender(state.pools.operate).singletons(), "next": None})


@router.post("/singletons/{name}/take", response_model=TakenDocument)
async def take(state: TheState, caller: Operator, name: Name, body: Take | None = None) -> Any:  # noqa: ARG001 - the scope is the point
    """End the term of a dead holder, so that another can begin."""
    return JsonAnswer(
        {"answer": await Mender(state.pools.operate).take(_checked(name), force=body.force if body else False)}
    )


@router.get("/audit", response_model=Page)
async def audit(
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    *,
    limit: Limit = 50,
    after: After = None,
    actor: Text = None,
    action: Action = None,
    subject: Text = None,
    since: Time = None,
    until: Time = None,
) -> Any:
    """What operators did, from where, and what was there before and after; the newest first."""
    wish = Filters(actor, action, subject, since, until)
    found = await Audit(state.pools.operate).acts(wish, before=id_place(after), limit=limit)
    return JsonAnswer({"items": found.rows, "next": None if found.next is None else cursor(found.next)})


def _checked(name: str) -> str:
    if "\x00" in name:
        raise not_found()
    return name
