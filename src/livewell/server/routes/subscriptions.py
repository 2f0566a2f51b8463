"""Sessions, and what they are subscribed to.

A session is one client that looks. Its id is random, made by the caller or here. Three cases get
one and the same answer: no session, a malformed id, and somebody else's session.
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Body, Response
from pydantic import BaseModel, ConfigDict, Field

from livewell.refresh.nudges import SESSIONS
from livewell.refresh.subscribe.subscriptions import SESSIONS_MAX, Subscription, Subscriptions, UnknownSession
from livewell.server.answers.json_answer import JsonAnswer
from livewell.server.answers.problems import not_found, too_many
from livewell.server.auth.caller import Caller
from livewell.server.depends import Subscriber, TheState
from livewell.server.process import ServerProcess

router = APIRouter(prefix="/v1", tags=["viewers"])

HEARTBEAT_SECONDS = 60
PAIRS_MAX = 1000
_UUID_CHARS = 36
_TOO_MANY = {  # for somebody anonymous?
    False: "You have too many sessions; close some, or wait five minutes.",
    True: "This public key, or your address, which may have a tenth of its sessions, has as many as it may. "
    "Close some, or wait until others are closed or have been silent for six minutes.",
}


class NewSession(BaseModel):
    """With an id of your own the call may be repeated."""

    model_config = ConfigDict(extra="forbid")

    session: uuid.UUID | None = None


class OpenSession(BaseModel):
    """A session. The client must send a heartbeat every heartbeat_seconds.

    A session without a sign of life for five minutes does not count.
    """

    session: uuid.UUID
    heartbeat_seconds: int


class Pair(BaseModel):
    """One key of one type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[str, Field(min_length=1, max_length=100)]
    key: Annotated[str, Field(min_length=1, max_length=200)]


class Pairs(BaseModel):
    """At most a thousand in a call."""

    model_config = ConfigDict(extra="forbid")

    subscriptions: Annotated[list[Pair], Field(min_length=1, max_length=PAIRS_MAX)]


class Subscribed(BaseModel):
    """What became of one pair, and how fresh it is.

    `answer` is subscribed, unknown_type, bad_key, capped, cold_budget or forbidden.
    """

    type: str
    key: str
    answer: str
    verdict: str | None
    source_at: str | None
    fetched_at: str | None
    checked_at: str | None
    age_seconds: float | None


class SubscribedPairs(BaseModel):
    """One for each distinct pair, in the order given."""

    subscriptions: list[Subscribed]


class Ended(BaseModel):
    """How many were subscribed to."""

    ended: int


@router.post("/sessions", status_code=201, response_model=OpenSession)
async def open_session(state: TheState, caller: Subscriber, body: Annotated[NewSession | None, Body()] = None) -> Any:
    """Open a session."""
    most = await _sessions_max(state, caller)
    opened = await _subscriptions(state).open(
        viewer_of(caller), session=body.session if body else None, sessions_max=most
    )
    if opened == "too_many":
        raise too_many(_TOO_MANY[caller.user is None], seconds=60, word="sessions")
    if isinstance(opened, str):
        raise not_found()  # the id is somebody else's
    return JsonAnswer({"session": str(opened), "heartbeat_seconds": HEARTBEAT_SECONDS}, 201)


@router.put("/sessions/{session}", status_code=204, response_class=Response)
async def heartbeat(state: TheState, caller: Subscriber, session: str) -> None:
    """Say that you still look."""
    if not await _subscriptions(state).heartbeat(session_id(session), viewer_of(caller)):
        raise not_found()


@router.delete("/sessions/{session}", status_code=204, response_class=Response)
async def close_session(state: TheState, caller: Subscriber, session: str) -> None:
    """End a session and everything it is subscribed to; its stream says goodbye."""
    found = session_id(session)
    if not await _subscriptions(state).close(found, viewer_of(caller)):
        raise not_found()
    _changed(state, found)


@router.put("/sessions/{session}/subscriptions", response_model=SubscribedPairs)
async def subscribe(state: TheState, caller: Subscriber, session: str, body: Pairs) -> Any:
    """Look at these, too; what is there already stays.

    The answer says how fresh each is, the stream brings the values.
    """
    found = session_id(session)
    pairs = [(pair.type, pair.key) for pair in dict.fromkeys(body.subscriptions)]
    allowed = [pair for pair in pairs if caller.may_read(pair[0]) and _sound(*pair)]
    watched = await _subscriptions(state).subscribe(
        found, viewer_of(caller), allowed, cold_max=_cold_max(state, caller)
    )
    if isinstance(watched, UnknownSession):
        raise not_found()
    _changed(state, found)
    answers = {(one.data_type, one.key): _answer(one) for one in watched}
    return JsonAnswer({"subscriptions": [answers.get(pair) or _refused(caller, *pair) for pair in pairs]})


@router.delete("/sessions/{session}/subscriptions", response_model=Ended)
async def unsubscribe(state: TheState, caller: Subscriber, session: str, body: Pairs) -> Any:
    """Look at these no longer."""
    found = session_id(session)
    pairs = [(pair.type, pair.key) for pair in dict.fromkeys(body.subscriptions) if _sound(pair.type, pair.key)]
    ended = await _subscriptions(state).unsubscribe(found, viewer_of(caller), pairs)
    if isinstance(ended, UnknownSession):
        raise not_found()
    _changed(state, found)
    return JsonAnswer({"ended": ended})


def viewer_of(caller: Caller) -> str | None:
    """Whose sessions these are: a user's, or of somebody anonymous, those of the public key."""
    return caller.user or caller.origin


async def _sessions_max(state: ServerProcess, caller: Caller) -> int:
    """Of a user, or of a public key in all; the server remembers the key, so this asks nobody."""
    if caller.user is not None:
        return SESSIONS_MAX
    key = await state.auth.keys.find(caller.key_id or "")
    return (key and key.sessions_max) or state.settings.public_sessions_max


def session_id(session: str) -> uuid.UUID:
    """A malformed id is no session, and nothing more is said about it."""
    try:
        if len(session) != _UUID_CHARS:
            raise ValueError
        return uuid.UUID(session)
    except ValueError:
        raise not_found() from None


def _sound(data_type: str, key: str) -> bool:
    """Postgres can be asked about it."""
    return "\x00" not in data_type + key and (data_type + key).isprintable()


def _cold_max(state: ServerProcess, caller: Caller) -> int | None:
    """Whoever operates the system may bring up as many keys as they like."""
    return None if caller.may("operate") else state.settings.cold_reads_max


def _changed(state: ServerProcess, session: uuid.UUID) -> None:
    """Its stream hears at once if it is ours, and by a nudge if another server has it."""
    state.sessions.touch(session)
    state.nudger.nudge(SESSIONS)


def _answer(one: Subscription) -> dict[str, Any]:
    return {
        "type": one.data_type,
        "key": one.key,
        "answer": one.answer,
        "verdict": one.verdict if one.answer == "subscribed" else None,
        "source_at": one.source_at,
        "fetched_at": one.fetched_at,
        "checked_at": one.checked_at,
        "age_seconds": one.age_seconds,
    }


def _refused(caller: Caller, data_type: str, key: str) -> dict[str, Any]:
    answer = "bad_key" if caller.may_read(data_type) else "forbidden"
    times = dict.fromkeys(("verdict", "source_at", "fetched_at", "checked_at", "age_seconds"))
    return {"type": data_type, "key": key, "answer": answer, **times}


def _subscriptions(state: ServerProcess) -> Subscriptions:
    return Subscriptions(state.pools.api, state.nudger)
