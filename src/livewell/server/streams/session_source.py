"""What a session's stream sends: a reading of each key it is subscribed to, then every change.

registered with the hub ──▶ snapshot: everything, with its value; what does not fit: capped ──▶ ready ──▶ changes

The value goes along when the client does not yet have this version of it on this connection. A
frame without a value says that the value is as it was, and was verified or is failing.
"""

from __future__ import annotations

import asyncio

import orjson

from livewell.refresh.push.key_state import KeyState, Numbers
from livewell.refresh.push.streamed_sessions import StreamedSession, StreamedSessions
from livewell.server.auth.caller import Caller
from livewell.server.streams.stream import CHUNK_BYTES, event
from livewell.telemetry.measures import CAPPED, READINGS_PUSHED

_MUCH = 20  # readings


class SessionSource:
    """The source of one session's stream."""

    def __init__(self, sessions: StreamedSessions, streamed: StreamedSession, numbers: Numbers = "number") -> None:
        self._numbers: Numbers = numbers
        self._sessions = sessions
        self._streamed = streamed
        self._follower = streamed.follower
        self._ready = False
        self.wake: asyncio.Event = streamed.follower.wake
        self.name = f"session:{streamed.session}"

    @property
    def much(self) -> bool:
        """A chunk or more."""
        return self._follower.waiting + len(self._streamed.untold) > _MUCH

    def next(self) -> bytes | None:
        """The readings that have waited longest, each as it is by now.

        After the first of everything, ready.
        """
        frames: list[bytes] = []
        size = 0
        while size < CHUNK_BYTES and (state := self._follower.pop()) is not None:
            frames.append(self._frame(state))
            size += len(frames[-1])
        if frames:
            READINGS_PUSHED.add(len(frames))
        while size < CHUNK_BYTES and self._streamed.untold:
            data_type, key = next(iter(self._streamed.untold))
            del self._streamed.untold[data_type, key]
            CAPPED.add()
            frames.append(event("capped", orjson.dumps({"type": data_type, "key": key})))
            size += len(frames[-1])
        if not frames and not self._ready and not self._follower.awaited:
            self._ready = True
            frames.append(event("ready", orjson.dumps({"keys": len(self._follower.keys)})))
        return b"".join(frames) or None

    def over(self) -> str | None:
        """The session was closed, or swept."""
        return "session" if self._streamed.ended else None

    def allow(self, caller: Caller) -> None:
        """Other types than before."""
        self._sessions.allow(self._streamed, caller.may_read)

    def close(self) -> None:
        """Follow nothing any more."""
        self._sessions.close(self._streamed)

    def _frame(self, state: KeyState) -> bytes:
        has, pair = self._follower.has, state.pair
        new = has.get(pair) != state.version
        has[pair] = state.version
        return event("reading", state.now().document(value=new, numbers=self._numbers))
