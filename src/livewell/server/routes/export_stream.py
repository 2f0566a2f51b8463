"""How far an export or a batch is, as a stream: one event for each step, numbered.

    id: 3
    event: step
    data: {"id": …, "seq": 3, "progress": 50, "state": "running", …}

A client that comes back with Last-Event-ID, to any server, gets what came after that number: steps
are rows. GET …?after=3 answers the same steps. At the end: bye.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Header

from livewell.exports.exports import Exports
from livewell.exports.follow import ExportFollower
from livewell.server.answers.json_answer import encode
from livewell.server.answers.problems import not_found
from livewell.server.auth.caller import Caller
from livewell.server.depends import Exporter, TheState
from livewell.server.routes.exports import BatchId, ExportId, Steps
from livewell.server.streams.stream import Stream

router = APIRouter(prefix="/v1", tags=["exports"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events: step (with its number as id), beat, bye.", "content": {"text/event-stream": {}}}
}
LastEvent = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=40, description="The number of the last step that was seen.")
]


class ExportSteps:
    """The source of one stream."""

    def __init__(self, exports: Exports, follower: ExportFollower) -> None:
        self._exports = exports
        self._follower = follower
        self.wake: asyncio.Event = follower.wake
        self.much = False  # an export has some ten steps
        self.name = f"export:{follower.export}:{secrets.token_hex(8)}"  # any number may follow one

    def next(self) -> bytes | None:
        """The steps that are new."""
        export = str(self._follower.export)
        frames = [_step(one["seq"], {**one, "id": export}) for one in self._follower.pop()]
        return b"".join(frames) or None

    def over(self) -> str | None:
        """Nothing more happens to it."""
        return "ended" if self._follower.ended else None

    def allow(self, caller: Caller) -> None:
        """All of one's own or nothing."""

    def close(self) -> None:
        """Follow it no more."""
        self._exports.unfollow(self._follower)


@router.get("/exports/batch/{id}/stream", status_code=200, response_class=Stream, responses=_STREAM)
async def stream_batch(
    state: TheState,
    caller: Exporter,
    id: BatchId,  # noqa: A002 - as everywhere
    after: Steps = 0,
    last: LastEvent = None,
) -> Stream:
    """Follow a batch until all of it has ended; an event has the whole batch."""
    state.streams.admit(caller)
    user = await state.owners.of(caller)
    follower = await state.exports.follow_batch(id, user=user, after=_seen(after, last))
    return _started(state, caller, follower)


@router.get("/exports/{id}/stream", status_code=200, response_class=Stream, responses=_STREAM)
async def stream_export(
    state: TheState,
    caller: Exporter,
    id: ExportId,  # noqa: A002 - as everywhere
    after: Steps = 0,
    last: LastEvent = None,
) -> Stream:
    """Follow an export until it has ended."""
    state.streams.admit(caller)
    user = await state.owners.of(caller)
    follower = await state.exports.follow(id, user=user, after=_seen(after, last))
    return _started(state, caller, follower)


def _started(state: TheState, caller: Caller, follower: ExportFollower | None) -> Stream:
    if follower is None:
        raise not_found()
    return state.streams.start(caller, ExportSteps(state.exports, follower), {"export"})


def _step(seq: int, document: Any) -> bytes:
    """One event with its number: a browser sends it back when it reconnects."""
    return b"id: %d\nevent: step\ndata: %s\n\n" % (seq, encode(document))


def _seen(after: int, last: str | None) -> int:
    """The number that the client has; what is no number of ours counts as none."""
    if last is not None and last.isascii() and last.isdigit() and int(last) < 2**63:
        return int(last)
    return after
