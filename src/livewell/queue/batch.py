"""A batch: jobs that belong together, counted as they end, with a follow-up when all are done.

    open ──seal──▶ running ──last job ends──▶ ended, the follow-up is enqueued in the same transaction
                      └──last job ends, but some failed and the follow-up wants all to succeed──▶ failed ──redrive──▶ running

async with await app.batch(follow_up=report, arguments={"day": "2026-11-16"}) as batch:
    await resize.options(batch=batch).enqueue_many([{"path": path} for path in paths])      # sealed when the block ends

Only jobs that were inserted count: one merged into another job by its unique key belongs to that
one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from livewell.errors import InvalidOption, LivewellError
from livewell.queue.enqueue import Request

Call = Callable[[str, Sequence[Any]], Awaitable[list[tuple[Any, ...]]]]


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch is; state is open, running, failed or ended."""

    id: int
    state: str
    total: int
    remaining: int
    succeeded: int
    failed: int
    cancelled: int
    follow_id: int | None


class Batch:
    """One batch, by its id; another process may hold another handle on it (app.find_batch)."""

    def __init__(self, batch_id: int, call: Call) -> None:
        self.id = batch_id
        self._call = call

    async def seal(self) -> None:
        """Nothing more will be added. Waits for transactions that are adding."""
        if not (await self._call("SELECT livewell.seal_batch(%s)", (self.id,)))[0][0]:
            raise LivewellError(f"batch {self.id}: there is none with that id")

    async def state(self) -> BatchState:
        """Counts, now."""
        rows = await self._call(
            "SELECT id, state, total, remaining, succeeded, failed, cancelled, follow_id FROM livewell.show_batch(%s)",
            (self.id,),
        )
        if not rows:
            raise LivewellError(f"batch {self.id}: there is none with that id")
        return BatchState(*rows[0])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.seal()  # after an error it stays open: its jobs run, the follow-up waits for somebody to seal it


class FollowUp(Protocol):
    """The task of the follow-up, as far as a batch knows it.

    The task itself is in queue/task.py, which this module may not import.
    """

    def request(self, arguments: dict[str, Any]) -> Request:
        """What would be enqueued."""


async def create_batch(
    call: Call,
    ids: Sequence[int],
    follow_up: FollowUp | None,
    arguments: dict[str, Any] | Callable[[int], dict[str, Any]] | None,
    when: str,
) -> Batch:
    """Open a batch. `ids` are two that were reserved: the batch's and the follow-up's."""
    if when not in ("done", "succeeded"):
        raise InvalidOption(f"when {when!r}: allowed are done (all have ended) and succeeded (all have succeeded)")
    if follow_up is None and arguments is not None:
        raise InvalidOption("arguments without follow_up: whose are they?")
    batch_id, follow_id = ids
    follow: tuple[Any, ...] = (None, None, None)
    if follow_up is not None:
        request = follow_up.request((arguments(batch_id) if callable(arguments) else arguments) or {})
        request.check()
        follow = (follow_id, when, request.document())
    await call("SELECT livewell.create_batch(%s, %s, %s, %s::jsonb)", (batch_id, *follow))
    return Batch(batch_id, call)
