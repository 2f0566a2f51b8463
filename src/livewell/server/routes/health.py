"""Is the server alive, and can it do its work?

No login is needed. The answer does not say why: that is in the log.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from livewell.server.depends import TheState

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz() -> PlainTextResponse:
    """The process answers; a supervisor that gets nothing should start it again."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
async def readyz(state: TheState) -> PlainTextResponse:
    """The database answers; a load balancer that gets 503 should ask elsewhere.

    Known from memory: asking costs the database nothing, and is answered at once while it is away.
    """
    if state.stopping.is_set():
        return PlainTextResponse("stopping\n", 503)
    return PlainTextResponse("ready\n") if state.presence.ready else PlainTextResponse("no database\n", 503)
