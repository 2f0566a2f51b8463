"""Follow exports: one reader per process asks how far all of them are, and tells their followers.

followed ──step──▶ told ──▶ followed        ──ended──▶ told for the last time

It asks twice a second, and at once when it is woken by a nudge, while anybody follows. What a
follower is told is the steps after a number, which any server can give: who was cut off goes on
elsewhere with the number it saw last (E2).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError
from livewell.exports.model import OPEN_STATES, Document

log = structlog.get_logger("livewell.exports")

_SHOW = "SELECT livewell.show_export(%s, %s, %s)"
_SHOW_BATCH = "SELECT livewell.show_export_batch(%s, %s, %s)"
_READ = "SELECT place, document FROM livewell.follow_exports(%s, %s, %s, %s)"
_PAGE = 200
_EVERY_SECONDS = 0.5
_REST_SECONDS = 0.02  # nudges that come together are one look
_FRAMES_MAX = 100


class ExportFollower:
    """What is new of one export or batch, until it is taken."""

    def __init__(self, export: UUID, user: str, *, after: int, is_batch: bool) -> None:
        self.export = export
        self.user = user
        self.after = after
        self.is_batch = is_batch
        self.wake = asyncio.Event()
        self.ended = False
        self.document: Document | None = None  # as it was seen last
        self._frames: deque[Document] = deque(maxlen=_FRAMES_MAX)

    def tell(self, document: Document | None) -> None:
        """What there is now; None if there is nothing any more."""
        self.document = document
        if document is not None and document["seq"] > self.after:
            frames = [document] if self.is_batch else document["steps"]
            self._frames.extend(one for one in frames if one["seq"] > self.after)
            self.after = document["seq"]
        if document is None or (document["state"] == "ended" if self.is_batch else _has_ended(document)):
            self.ended = True
        self.wake.set()

    def pop(self) -> list[Document]:
        """The frames that are new, in order; each has its number as `seq`."""
        frames = list(self._frames)
        self._frames.clear()
        return frames


class ExportProgress:
    """The reader of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers: set[ExportFollower] = set()
        self._reading: asyncio.Task[None] | None = None
        self._soon = asyncio.Event()
        self.queries = 0

    async def follow(self, export: UUID, user: str, *, after: int, is_batch: bool) -> ExportFollower | None:
        """Begin to follow; None if the user has none with that id."""
        follower = ExportFollower(export, user, after=after, is_batch=is_batch)
        [(found,)] = await self._database.call(_SHOW_BATCH if is_batch else _SHOW, (user, export, after))
        if found is None:
            return None
        follower.tell(found)
        self._followers.add(follower)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._run(), name="export-progress")
        return follower

    def unfollow(self, follower: ExportFollower) -> None:
        """Stop following."""
        self._followers.discard(follower)

    def wake(self) -> None:
        """Something has changed: look at once."""
        self._soon.set()

    async def close(self) -> None:
        """End the reader."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=2)

    async def _run(self) -> None:
        while self._followers:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), _EVERY_SECONDS)
            self._soon.clear()
            # By user: to show an export may lock its user's row, and other readers do it in that order.
            waiting = sorted((one for one in self._followers if not one.ended), key=lambda one: one.user)
            for start in range(0, len(waiting), _PAGE):
                try:
                    await self._read(waiting[start : start + _PAGE])
                except DatabaseError as error:
                    log.warning("cannot read the progress of exports", error=str(error))
                    break
            await asyncio.sleep(_REST_SECONDS)

    async def _read(self, followers: Sequence[ExportFollower]) -> None:
        self.queries += 1
        rows: list[tuple[Any, ...]] = await self._database.call(
            _READ,
            (
                [one.user for one in followers],
                [one.export for one in followers],
                [one.after for one in followers],
                [one.is_batch for one in followers],
            ),
        )
        for place, document in rows:
            followers[place - 1].tell(document)


def _has_ended(document: Document) -> bool:
    return document["state"] not in OPEN_STATES
