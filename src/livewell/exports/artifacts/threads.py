"""Calls that block, in threads of a store's own and under a deadline.

    waiting ──▶ running ──▶ done ──▶ its caller has the result, or an ArtifactError
                   └──its caller has gone──▶ done ──▶ `late` undoes it

A disk or a network that hangs holds up those who want files, and nobody else. A thread cannot be
stopped: a call whose caller was cancelled, or had waited long enough, goes on by itself.

The client of S3 could be awaited without threads. It was tried: its answers come from threads of
its own, and one that comes while Python ends aborts the process; an error that nobody was waiting
for any more was logged by asyncio, with bucket and key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from livewell.exports.artifacts.store import ArtifactError

Result = TypeVar("Result")


class Threads:
    """At most `count` calls at once; one that takes longer than `seconds`, waiting included, is unreachable.

    read_failure   our own error in place of one of the disk or of a library; None: it is a bug
    """

    def __init__(
        self, count: int, *, seconds: float, read_failure: Callable[[Exception], ArtifactError | None]
    ) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="livewell-artifacts")
        self._seconds = seconds
        self._read_failure = read_failure

    async def run(self, work: Callable[[], Result], *, late: Callable[[], object] | None = None) -> Result:
        """What the work gives. late: called in a thread if it ends well after its caller has gone."""
        try:
            future = self._pool.submit(work)
        except RuntimeError:  # shut down
            raise ArtifactError("refused", "closed") from None
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:  # ours, or one of the disk
            failure = ArtifactError("unreachable", "timeout")
            self._undo_later(future, late)
        except asyncio.CancelledError:
            self._undo_later(future, late)
            raise
        except ArtifactError:
            raise
        except Exception as error:
            known = self._read_failure(error)
            if known is None:
                raise
            failure = known
        raise failure  # out here: not even the context of this error is the other one, with its path

    async def run_to_the_end(self, work: Callable[[], object], *, seconds: float) -> None:
        """Wait for it so long; then, or if we are cancelled, it goes on by itself, and its error is dropped."""
        with suppress(RuntimeError):
            await asyncio.wait([asyncio.wrap_future(_silenced(self._pool.submit(work)))], timeout=seconds)

    def close(self) -> None:
        """Begin nothing more; what runs goes on."""
        self._pool.shutdown(wait=False)

    def _undo_later(self, future: Future[Result], late: Callable[[], object] | None) -> None:
        def undo(done: Future[Result]) -> None:
            if late is not None and not done.cancelled() and done.exception() is None:
                with suppress(RuntimeError):
                    self._pool.submit(late)

        future.add_done_callback(undo)


def _silenced(future: Future[object]) -> Future[None]:
    """Ends when that one ends, and never with an error that asyncio would log."""
    silent: Future[None] = Future()
    future.add_done_callback(lambda _: silent.set_result(None))
    return silent
