"""Warnings, for operators: what was tolerated, and how often."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from livewell.operations.warnings import Warnings
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, page
from livewell.server.depends import Operator, TheState
from livewell.server.routes.types import Page, cursor_place

router = APIRouter(prefix="/v1", tags=["operations"])


@router.get("/warnings", response_model=Page)
async def warnings(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    hours: Annotated[int, Query(ge=1, le=720, description="Of so many hours.")] = 24,
    of: Annotated[
        str | None, Query(alias="type", max_length=100, pattern=r"^[^\x00]*$", description="About this type.")
    ] = None,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Tolerated failures by place and kind, with their rates and the latest example."""
    rows = await Warnings(state.pools.operate).page(hours=hours, data_type=of, after=cursor_place(after), limit=limit)
    items = [{name: value for name, value in row.items() if name != "cursor"} for row in rows]
    return JsonAnswer(page(items, limit, rows[-1]["cursor"] if rows else None))
