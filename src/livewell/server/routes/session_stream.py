"""The stream of a session: a reading of each key that it is subscribed to, then every change."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from livewell.server.answers.problems import not_allowed, not_found
from livewell.server.answers.reading import Numbers
from livewell.server.auth.share_owner import client_of
from livewell.server.depends import Subscriber, TheState
from livewell.server.routes.subscriptions import session_id, viewer_of
from livewell.server.streams.session_source import SessionSource
from livewell.server.streams.stream import Stream

router = APIRouter(prefix="/v1", tags=["viewers"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: reading, capped, ready, beat, away, back, bye; see livewell docs reference/streams.",
        "content": {"text/event-stream": {}},
    }
}


@router.get("/sessions/{session}/stream", status_code=200, response_class=Stream, responses=_STREAM)
async def stream_session(state: TheState, caller: Subscriber, session: str, numbers: Numbers = "number") -> Stream:
    """A reading of everything the session is subscribed to, then every change.

    Keys beyond the client's share are named as capped. A newer stream of a session takes the place
    of the older. Last-Event-ID means nothing here: whoever connects gets everything.
    """
    if not caller.may("view"):
        raise not_allowed("view")
    found = session_id(session)
    state.streams.admit(caller, f"session:{found}")
    streamed = await state.sessions.open(found, viewer_of(caller), caller.may_read, client=client_of(caller))
    if streamed is None:
        raise not_found()
    return state.streams.start(caller, SessionSource(state.sessions, streamed, numbers), {"subscribe", "view"})
