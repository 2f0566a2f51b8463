"""The plan, for operators: what freshness is possible with who watches now (X4)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from livewell.refresh.plan.report import document, make_plan
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.depends import Operator, TheState

router = APIRouter(prefix="/v1", tags=["types"])


class PlanDocument(BaseModel):
    """What is possible, by upstream; livewell docs howto/plan explains every figure."""

    model_config = ConfigDict(extra="allow")

    at: datetime
    short: bool = Field(description="Something that is watched cannot be kept fresh, or not for long.")
    cut: bool = Field(description="There was more than a plan looks at.")
    upstreams: list[dict[str, Any]]


@router.get("/plan", response_model=PlanDocument)
async def plan(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """Calls and bytes needed, the share that can be fresh, when the budget ends, and what to slow down."""
    return JsonAnswer(document(await make_plan(state.pools.operate)))
