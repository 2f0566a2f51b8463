"""Run one claimed job, or the jobs of one call together, and say what came of each.

The worker does it, and so do inline runs in tests.

decode payload ──does not fit──▶ Refused(payload)
    │
 handler ──returns──▶ Succeeded      ──raises Retry──▶ Failed(after)      ──raises Cancel──▶ Stopped
    ├──answers FinishedElsewhere, as a handler of many jobs may for each──▶ that: its end is committed already
    ├──raises Release, or its permit was too late──▶ Released
    ├──deadlock, serialisation failure (R17), or our database away──▶ Released: not the job's fault
    ├──OwnershipLost──▶ None: somebody else runs it, there is nothing to say
    ├──MemoryError, and there really is none left──▶ OutOfMemory: the process cannot be trusted any more
    └──any other exception──▶ Failed, with the error in words
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from livewell.errors import DatabaseUnavailable, InvalidPayload, OwnershipLost, PermitLate
from livewell.model import (
    Cancel,
    Claimed,
    Failed,
    FinishedElsewhere,
    Outcome,
    Refused,
    Release,
    Released,
    Retry,
    RunEnd,
    Stopped,
    Succeeded,
)
from livewell.queue.definition import TaskDefinition
from livewell.queue.job import Job
from livewell.queue.outcomes import speak_as_one
from livewell.telemetry import tracing
from livewell.telemetry.redact import redact
from livewell.telemetry.tracebacks import has_cause, mask_known, place_of, traceback_of, words

_SUCCEEDED = Succeeded()
_CONFLICTS = ("40001", "40P01")
_ERROR_CHARACTERS_MAX = 2000
_UNKNOWN_TASK_SECONDS = 30.0

_SPARE_BYTES = 2**22

RunSync = Callable[[Callable[..., Any], dict[str, Any]], Awaitable[Any]]


class OutOfMemory(Exception):
    """A handler failed for want of memory, and the process has none left.

    Other code of the process may have failed unseen.
    """


async def run_job(job: Job, tasks: Mapping[str, TaskDefinition], run_sync: RunSync) -> Outcome | None:
    """Run the handler to its end; a cancellation passes through, and so does OutOfMemory."""
    definition = tasks.get(job.claimed.kind)
    if definition is None:
        return Released(f"no task named {job.claimed.kind!r} in this worker", _UNKNOWN_TASK_SECONDS)
    try:
        arguments = definition.decode(job.claimed.payload)
    except InvalidPayload as error:
        return Refused(clean(str(error)), reason="payload")
    if definition.job_parameter is not None:
        arguments[definition.job_parameter] = job
    try:
        with _span(job.claimed) if tracing.on() else tracing.NOTHING:
            if definition.is_async:
                await definition.function(**arguments)
            else:
                await run_sync(definition.function, arguments)
    except Exception as error:
        if isinstance(error, MemoryError) and not _memory_left():
            raise OutOfMemory from error
        return _outcome_of(error)
    return _SUCCEEDED


def _span(claimed: Claimed) -> AbstractContextManager[Any]:
    return tracing.span(f"run {claimed.kind}", "CONSUMER", parent=claimed.trace, job=claimed.id)


async def run_call(jobs: Sequence[Job], tasks: Mapping[str, TaskDefinition], run_sync: RunSync) -> list[RunEnd]:
    """Run the jobs of one call: one of them as run_job does, or all of them by a handler that takes a list."""
    definition = tasks.get(jobs[0].claimed.kind)
    if definition is None or definition.list_parameter is None:
        return [await run_job(job, tasks, run_sync) for job in jobs]
    ends: dict[int, RunEnd] = {}
    items: list[Any] = []
    good: list[Job] = []
    for job in jobs:
        try:
            items.append(definition.decode_item(job.claimed.payload))
            good.append(job)
        except InvalidPayload as error:
            ends[job.claimed.fence] = Refused(clean(str(error)), reason="payload")
    if good:
        said = await _run_list(definition, good, items, run_sync)
        ends |= {job.claimed.fence: end for job, end in zip(good, said, strict=True)}
    ended = [ends[job.claimed.fence] for job in jobs]
    speak_as_one(jobs, ended)
    return ended


async def _run_list(
    definition: TaskDefinition, jobs: list[Job], items: list[Any], run_sync: RunSync
) -> Sequence[RunEnd]:
    arguments: dict[str, Any] = {str(definition.list_parameter): items}
    if definition.job_parameter is not None:
        arguments[definition.job_parameter] = jobs
    try:
        # One call for many: it belongs to the trace of the first.
        first = jobs[0].claimed
        with tracing.span(f"run {first.kind}", "CONSUMER", parent=first.trace, job=first.id, jobs=len(jobs)):
            if definition.is_async:
                answer = await definition.function(**arguments)
            else:
                answer = await run_sync(definition.function, arguments)
    except Exception as error:
        if isinstance(error, MemoryError) and not _memory_left():
            raise OutOfMemory from error
        return [_outcome_of(error)] * len(jobs)
    if answer is None:
        return [_SUCCEEDED] * len(jobs)
    if not isinstance(answer, list) or len(answer) != len(jobs):
        size = f"{len(answer)}" if isinstance(answer, list) else type(answer).__name__
        return [Failed(f"the handler answered {size}; a list of {len(jobs)} outcomes is right, or None")] * len(jobs)
    return [_end_of(one) for one in answer]


def _end_of(one: object) -> RunEnd:
    """What a handler of many jobs answered for one of them."""
    if one is None:
        return _SUCCEEDED
    if isinstance(one, FinishedElsewhere):
        return one
    if isinstance(one, Exception):
        return _outcome_of(one)
    return Failed(f"the handler answered a {type(one).__name__} for this job; None or an exception is right")


def _memory_left() -> bool:
    """False while the failed handler's memory is still held.

    A single request that was too large leaves plenty.
    """
    try:
        bytearray(_SPARE_BYTES)
    except MemoryError:
        return False
    return True


def _outcome_of(error: Exception) -> Outcome | None:
    outcome: Outcome | None
    match error:
        case OwnershipLost():
            outcome = None
        case Retry():
            said = traceback_of(error) if has_cause(error) else None  # asked for by name: only what led to it is news
            outcome = Failed(clean(words(error)), error.after, error.blame, cause_of(error), said)
        case Release():
            outcome = Released(clean(words(error)), error.after)
        case PermitLate():
            outcome = Released(clean(words(error)))
        case Cancel():
            outcome = Stopped(clean(words(error) or "the handler cancelled itself"))
        case _ if is_conflict(error):
            outcome = Released(describe(error))  # back at once (R17), behind what waited meanwhile
        case DatabaseUnavailable():
            outcome = Released(describe(error), random.uniform(1, 3))  # noqa: S311 - jitter
        case _:
            outcome = failed(error)
    return outcome


def failed(error: BaseException, text: str | None = None) -> Failed:
    """A failure with all that is told of it.

    text: for where the error's own would not say what happened.
    """
    return Failed(text or describe(error), cause=cause_of(error), traceback=traceback_of(error))


def cause_of(error: BaseException) -> str:
    """Type and place: what failures of one kind have in common."""
    place = place_of(error)
    return f"{type(error).__name__} at {place}" if place else type(error).__name__


def is_conflict(error: BaseException | None) -> bool:
    """A deadlock or serialisation failure anywhere in the chain, from any driver."""
    for _ in range(10):
        if error is None:
            return False
        if (getattr(error, "sqlstate", None) or getattr(getattr(error, "orig", None), "sqlstate", None)) in _CONFLICTS:
            return True
        error = error.__cause__ or error.__context__
    return False


def describe(error: BaseException) -> str:
    """Type, message and place of an error: enough to find it, nothing secret, no paths."""
    place = place_of(error)
    return clean(f"{type(error).__name__}: {words(error)}") + (f" ({place})" if place else "")


def clean(text: str) -> str:
    """Text that any Postgres column takes: redacted, bounded, no NUL, no lone surrogate."""
    hidden = mask_known(text, 2 * _ERROR_CHARACTERS_MAX).encode(errors="replace").decode()
    return redact(hidden.replace("\x00", "\N{REPLACEMENT CHARACTER}"))[:_ERROR_CHARACTERS_MAX]
