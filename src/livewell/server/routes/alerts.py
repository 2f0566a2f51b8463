"""Alerts, for operators: what is wrong now and was, who was told, silences, and channels.

Each act is recorded with its caller.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from livewell.alerts.admin import SILENCE_SECONDS_MAX, AlertAdmin, Tested
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, page
from livewell.server.answers.problems import not_found
from livewell.server.depends import Operator, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page

router = APIRouter(prefix="/v1", tags=["operations"])

AlertId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The number of an alert.")]
Channel = Annotated[str, Path(max_length=100, description="The name of a channel.")]
Rule = Annotated[str, Field(max_length=100, pattern=r"^[^\x00]*$")]
Subject = Annotated[str, Field(max_length=1200, pattern=r"^[^\x00]*$")]


class Silence(BaseModel):
    """Tell nobody of a rule, or of one of its subjects, for so many seconds."""

    model_config = ConfigDict(extra="forbid")

    rule: Rule
    subject: Subject = ""
    seconds: Annotated[float, Field(ge=1, le=SILENCE_SECONDS_MAX, allow_inf_nan=False)]


class Silenced(BaseModel):
    """The end of the silence."""

    until: datetime


class TestedDocument(BaseModel):
    """Whether somebody will send it.

    nobody: no worker was here for a minute. waiting: the last test is not over yet.
    """

    answer: Tested


@router.get("/alerts", response_model=Page)
async def alerts(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    only: Annotated[Literal["armed", "fired", "cooling", "all"] | None, Query(alias="state")] = None,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Alerts by number: those that are fired or cooling, or those of one state."""
    rows = await _admin(state).alerts(state=only, after=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.get("/alerts/firings", response_model=Page)
async def firings(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """What was wrong and is over, the newest first, with who was told."""
    rows = await _admin(state).past(before=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.get("/alerts/silences", response_model=Page)
async def silences(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """Of what nobody is told, until when, and by whom."""
    rows = await _admin(state).silences()
    return JsonAnswer(page(rows, len(rows) + 1, None))


@router.post("/alerts/silences", response_model=Silenced)
async def silence(state: TheState, caller: Operator, body: Silence) -> Any:  # noqa: ARG001 - the scope is the point
    """Tell nobody of a rule's alerts until the time is over; one in force is made longer or shorter."""
    return JsonAnswer({"until": await _admin(state).silence(body.rule, subject=body.subject, seconds=body.seconds)})


@router.delete("/alerts/silences", status_code=204)
async def unsilence(
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    rule: Annotated[Rule, Query()],
    subject: Annotated[Subject, Query(description="Only if it was silenced alone.")] = "",
) -> Response:
    """End a silence now."""
    await _admin(state).unsilence(rule, subject=subject)
    return Response(status_code=204)


@router.get("/alerts/channels", response_model=Page)
async def channels(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """Who is told, which of them are quiet or disabled, and how the last test of each ended."""
    rows = await _admin(state).channels()
    return JsonAnswer(page(rows, len(rows) + 1, None))


@router.post("/alerts/channels/{name}/test", response_model=TestedDocument, status_code=202)
async def test(state: TheState, caller: Operator, name: Channel) -> Any:  # noqa: ARG001 - the scope is the point
    """Send a test message through a channel, on the way that every alert goes."""
    return JsonAnswer({"answer": await _admin(state).test(_checked(name))}, 202)


@router.post("/alerts/channels/{name}/enable", status_code=204)
async def enable(state: TheState, caller: Operator, name: Channel) -> Response:  # noqa: ARG001 - the scope is the point
    """Let a channel send again whose receiver was gone, or wanted silence."""
    await _admin(state).enable(_checked(name))
    return Response(status_code=204)


@router.get("/alerts/{id}", response_model=dict[str, Any])
async def alert(state: TheState, caller: Operator, id: AlertId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """One alert, with its latest firings and every attempt to tell somebody."""
    return JsonAnswer(await _admin(state).alert(id))


def _admin(state: ServerProcess) -> AlertAdmin:
    return AlertAdmin(state.pools.operate, state.nudger)


def _checked(name: str) -> str:
    if "\x00" in name:
        raise not_found()
    return name
