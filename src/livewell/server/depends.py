"""What routes ask for: the server's state, the caller, and a scope.

@router.get("/types")
async def types(state: TheState, caller: Viewer) -> Answer: …

All are coroutines, though none waits for anything: FastAPI sends plain functions to a thread each,
and a hundred requests at once are then late by a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from livewell.db.acts import act_as
from livewell.server.answers.problems import not_allowed
from livewell.server.auth.caller import Caller
from livewell.server.process import ServerProcess


async def state_of(request: Request) -> ServerProcess:
    """Of the server that answers."""
    state: ServerProcess = request.state.server
    return state


async def caller_of(request: Request) -> Caller:
    """Whom the gate let in."""
    caller: Caller = request.state.caller
    return caller


def require(scope: str) -> Callable[[Request], Awaitable[Caller]]:
    """The caller, if they have this scope."""

    async def check(request: Request) -> Caller:
        caller = await caller_of(request)
        if not caller.may(scope):
            raise not_allowed(scope)
        if scope in ("operate", "admin"):
            act_as(caller.user or caller.client, from_where("http", request))
        return caller

    return check


async def require_look(request: Request) -> Caller:
    """The caller, if they may look at the dashboard."""
    caller = await caller_of(request)
    if not (caller.may("observe") or caller.may("operate")):
        raise not_allowed("observe")
    return caller


def from_where(by: str, request: Request) -> str:
    """For the audit: page or http, and the address of the request."""
    return f"{by} {request.client.host if request.client is not None else 'unknown'}"


TheState = Annotated[ServerProcess, Depends(state_of)]
Anybody = Annotated[Caller, Depends(caller_of)]  # whatever their scopes
Viewer = Annotated[Caller, Depends(require("view"))]
Subscriber = Annotated[Caller, Depends(require("subscribe"))]
Exporter = Annotated[Caller, Depends(require("export"))]  # documents and exports of their own
Observer = Annotated[Caller, Depends(require_look)]  # who operates may look too
Operator = Annotated[
    Caller, Depends(require("operate"))
]  # of every type: a key that is bound to types does not have it
