"""Dead letters over HTTP: mend a payload, discard. To list and redrive them see jobs.py."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from livewell.queue.admin import QueueAdmin
from livewell.server.answers.json_answer import JobId, JsonAnswer
from livewell.server.depends import Operator, TheState

router = APIRouter(prefix="/v1", tags=["jobs"])


class Mend(BaseModel):
    """The new arguments of the task; the task itself never changes.

    `payload` is a JSON object, or the text of one: of a text every digit is kept. `was`, the
    `payload` of GET /v1/jobs/{id}: if it is another one by now, nothing is done.
    """

    model_config = ConfigDict(extra="forbid")

    payload: dict[str, Any] | Annotated[str, Field(max_length=524_288)]
    was: Annotated[str, Field(max_length=524_288)] | None = None


class Discard(BaseModel):
    """Which dead letters are deleted for good. All that match: POST /v1/acts."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Field(min_length=1, max_length=1000)]


class Discarded(BaseModel):
    """How many there were. Those that are missing were redriven or discarded by somebody else."""

    discarded: int
    missing: int


@router.patch("/dead/{id}", status_code=204)
async def mend(state: TheState, caller: Operator, id: JobId, body: Mend) -> Response:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """Replace the payload of a dead letter."""
    await QueueAdmin(state.pools.operate, state.nudger).edit(id, body.payload, was=body.was)
    return Response(status_code=204)


@router.post("/dead/discard", response_model=Discarded)
async def discard(state: TheState, caller: Operator, body: Discard) -> Any:  # noqa: ARG001 - the scope is the point
    """Delete dead letters for good."""
    ids = sorted(set(body.ids))
    gone = await QueueAdmin(state.pools.operate, state.nudger).discard(ids)
    return JsonAnswer({"discarded": gone, "missing": len(ids) - gone})
