"""The system as a whole, for operators: its state as JSON, and the same for Prometheus."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from livewell.operations import metrics
from livewell.operations.state import read_state
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.depends import Operator, TheState

router = APIRouter(prefix="/v1", tags=["operations"])


@router.get("/system/state", response_model=dict[str, Any])
async def system_state(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """What waits, runs and died, who works, how fresh everything is, what limits allow.

    Each part says how its figures came about: exact, or estimated from a sample and how old that
    is.
    """
    return JsonAnswer(await read_state(state.pools.operate))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def prometheus(state: TheState, caller: Operator) -> Response:  # noqa: ARG001 - the scope is the point
    """The state as gauges, and what this process counted, as Prometheus reads it."""
    document = await read_state(state.pools.operate)
    return Response(metrics.text(document), media_type=metrics.CONTENT_TYPE)
