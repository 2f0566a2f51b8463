"""Is it alive, and can it do its work? Without login, and without a word about why: that is in the log."""

from __future__ import annotations

import structlog
from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from livewell.errors import LivewellError
from livewell.server.depends import TheState

log = structlog.get_logger("livewell.server")
router = APIRouter(include_in_schema=False)

_READY_SECONDS = 2.0


@router.get("/healthz")
async def healthz() -> PlainTextResponse:
    """The process answers; a supervisor that gets nothing should start it again."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
async def readyz(state: TheState) -> PlainTextResponse:
    """Every pool reaches the database; a load balancer that gets 503 should ask elsewhere."""
    if state.stopping.is_set():
        return PlainTextResponse("stopping\n", 503)
    try:
        for pool in state.pools.all():
            await pool.call("SELECT livewell.now()", seconds=_READY_SECONDS)
    except LivewellError as error:
        log.warning("not ready", error=str(error))
        return PlainTextResponse("no database\n", 503)
    return PlainTextResponse("ready\n")
