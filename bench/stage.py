"""What a measured process says to the one that measures it, as JSON lines.

    child ──ready──▶ parent ──go──▶ child ──done n, done n, …──▶ parent ──stop──▶ child ──answer──▶ parent

Both sides of a pair of workers thus start at the same moment, with imports and connections behind
them. Verbs that need no such care (install, fill, one, send) only answer. A parent that dies closes
our input, and that is a stop.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

Verb = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
_POLL_SECONDS = 0.02


class Stage:
    """The worker's end of the conversation."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last: float | None = None
        self.starts: dict[str, float] = {}
        self._told = 0

    def handler_started(self) -> None:
        """Called at the start of every handler."""
        if self.first is None:
            self.first = time.time()

    async def ready(self) -> None:
        """Say that all is prepared; come back when told to go."""
        _say({"ready": True})
        await asyncio.to_thread(sys.stdin.readline)

    async def until_stopped(self, done: Callable[[], int]) -> None:
        """Tell how many are done, whenever that changes, until told to stop.

        Polled, so that the worker's own code stays as users run it.
        """
        stop = asyncio.ensure_future(asyncio.to_thread(sys.stdin.readline))
        while not stop.done():
            if done() != self._told:
                self._told = done()
                _say({"done": self._told})
            await asyncio.sleep(_POLL_SECONDS)

    def answer(self, *, done: int, last: float | None) -> dict[str, Any]:
        """Make the answer that is given at the end.

        It says when the first handler started, when the last finish was written, and how many there
        were.
        """
        return {"first": self.first, "last": last, "done": done, "starts": self.starts}


def perform(verbs: dict[str, Verb]) -> None:
    """The whole of a child program: `python -m bench.peers.x VERB OPTIONS`.

    The database is in BENCH_DSN, for arguments can be read by everybody.
    """
    verb, dsn, options = sys.argv[1], os.environ["BENCH_DSN"], json.loads(sys.argv[2])
    _say({"answer": uvloop.run(_call(verbs[verb], dsn, options))})


async def _call(verb: Verb, dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    return await verb(dsn, options)


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)
