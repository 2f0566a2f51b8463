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
from livewell.telemetry.measures import CAPPED

_MUCH = 20  # readings


class SessionSource:
    """The source of one session's stream."""

    def __init__(self, sessions: StreamedSessions, viewing: StreamedSession, numbers: Numbers = "number") -> None:
        self._numbers: Numbers = numbers
        self._sessions = sessions
        self._viewing = viewing
        self._follower = viewing.follower
        self._ready = False
        self.wake: asyncio.Event = viewing.follower.wake
        self.name = f"session:{viewing.session}"

    @property
    def much(self) -> bool:
        """A chunk or more."""
        return self._follower.waiting + len(self._viewing.untold) > _MUCH

    def next(self) -> bytes | None:
        """The readings that have waited longest, each as it is by now.

        After the first of everything, ready.
        """
        frames: list[bytes] = []
        size = 0
        while size < CHUNK_BYTES and (shown := self._follower.pop()) is not None:
            frames.append(self._frame(shown))
            size += len(frames[-1])
        while size < CHUNK_BYTES and self._viewing.untold:
            kind, key = next(iter(self._viewing.untold))
            del self._viewing.untold[kind, key]
            CAPPED.add()
            frames.append(event("capped", orjson.dumps({"type": kind, "key": key})))
            size += len(frames[-1])
        if not frames and not self._ready and not self._follower.awaited:
            self._ready = True
            frames.append(event("ready", orjson.dumps({"keys": len(self._follower.keys)})))
        return b"".join(frames) or None

    def over(self) -> str | None:
        """The session was closed, or swept."""
        return "session" if self._viewing.ended else None

    def allow(self, caller: Caller) -> None:
        """Other types than before."""
        self._sessions.allow(self._viewing, caller.may_read)

    def close(self) -> None:
        """Follow nothing any more."""
        self._sessions.close(self._viewing)

    def _frame(self, shown: KeyState) -> bytes:
        has, place = self._follower.has, shown.place
        new = has.get(place) != shown.version
        has[place] = shown.version
        return event("reading", shown.now().document(value=new, numbers=self._numbers))
