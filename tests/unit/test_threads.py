"""Threads of blocking handlers when there is no memory left to say how they ended."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from livewell.queue.worker import threads


class StarvedLoop:
    """A loop that cannot even take note of a result."""

    tries = 0

    def call_soon_threadsafe(self, *_: object) -> None:
        """Fail as a process without memory does."""
        self.tries += 1
        raise MemoryError


def test_a_thread_that_cannot_report_gives_up_and_lets_go_of_the_handlers_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It tries for a while and no longer: the job's own timeout ends the job."""
    monkeypatch.setattr(threads, "_TRY_SECONDS", 0)
    loop = StarvedLoop()
    error = MemoryError()
    error.__context__ = ValueError("its frames hold the memory")

    delivered = threads._hand_over(
        cast("asyncio.AbstractEventLoop", loop), cast("asyncio.Future[Any]", None), None, error
    )

    assert delivered is False
    assert loop.tries == threads._TRIES
    assert error.__context__ is None
