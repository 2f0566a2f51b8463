"""Viewers: sessions. A session is one client that looks; its id is random and made by the caller, or here."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict

from livewell.server.depends import Subscriber, TheState
from livewell.server.problems import not_found, too_many
from livewell.server.wire import Answer

router = APIRouter(prefix="/v1", tags=["viewers"])

HEARTBEAT_SECONDS = 60


class NewSession(BaseModel):
    """With an id of your own the call may be repeated."""

    model_config = ConfigDict(extra="forbid")

    session: uuid.UUID | None = None


class OpenSession(BaseModel):
    """Say that it is still there every heartbeat_seconds; unseen for five minutes it does not count."""

    session: uuid.UUID
    heartbeat_seconds: int


@router.post("/sessions", status_code=201, response_model=OpenSession)
async def open_session(state: TheState, caller: Subscriber, body: Annotated[NewSession | None, Body()] = None) -> Any:
    """Open a session."""
    opened = await state.viewers.open(caller.user, session=body.session if body else None)
    if opened == "too_many":
        raise too_many("You have too many sessions; close some, or wait five minutes.", seconds=60, word="sessions")
    if isinstance(opened, str):
        raise not_found()  # the id is somebody else's
    return Answer({"session": str(opened), "heartbeat_seconds": HEARTBEAT_SECONDS}, 201)
