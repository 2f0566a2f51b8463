"""PUT /v1/beacons/NAME says that a program is alive; GET /v1/beacons lists all."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.depends import Operator, TheState

router = APIRouter(prefix="/v1", tags=["beacons"])

Name = Annotated[str, Path(pattern=r"^[a-z0-9_-]{1,60}$", description="The name of a beacon.")]
Every = Annotated[float, Query(gt=0, le=31_536_000, description="Seconds until it reports again.")]


@router.get("/beacons", response_model=dict[str, Any])
async def beacons(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """Every beacon by name."""
    [(found,)] = await state.pools.operate.call("SELECT livewell.state_beacons()")
    return JsonAnswer({"items": found["beacons"]})


@router.put("/beacons/{name}", status_code=204)
async def see(state: TheState, caller: Operator, name: Name, every: Every = 3600.0) -> Response:  # noqa: ARG001 - see above
    """Say that it is alive."""
    await state.pools.operate.call("SELECT livewell.see_beacon(%s, %s)", (name, every))
    return Response(status_code=204)
