"""Alerts, for operators: what is wrong now, and who was told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from livewell.alerts.admin import AlertAdmin
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, page
from livewell.server.depends import Operator, TheState
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page

router = APIRouter(prefix="/v1", tags=["operations"])

AlertId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The number of an alert.")]


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
    rows = await AlertAdmin(state.pools.operate).alerts(state=only, after=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.get("/alerts/{id}", response_model=dict[str, Any])
async def alert(state: TheState, caller: Operator, id: AlertId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """One alert, with its latest firings and every attempt to tell somebody."""
    return JsonAnswer(await AlertAdmin(state.pools.operate).alert(id))
