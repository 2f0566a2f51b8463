"""How runs ended, and how finish_jobs is told. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from livewell.db.link import as_numbers
from livewell.model import (
    Failed,
    FinishedElsewhere,
    Outcome,
    Permit,
    Refused,
    Released,
    RunEnd,
    Stopped,
    Succeeded,
)

if TYPE_CHECKING:
    from livewell.queue.job import Job


def end_of(job: Job, outcome: RunEnd) -> RunEnd:
    """How the run of a job ended.

    Its own transaction may have ended the job, whatever came after it.
    """
    if not job.finished or isinstance(outcome, FinishedElsewhere):
        return outcome
    return FinishedElsewhere(outcome or Succeeded())


def seen_in(end: RunEnd) -> Outcome | None:
    """What the handler came to, whoever wrote the job's end."""
    return end.outcome if isinstance(end, FinishedElsewhere) else end


def results(ended: Iterable[tuple[Job, Outcome]]) -> tuple[str, str, str | None]:
    """The arguments of finish_jobs.

    Plain successes as two arrays, the rest as one JSON document.
    """
    ids: list[int] = []
    fences: list[int] = []
    others: list[dict[str, Any]] = []
    for job, outcome in ended:
        claimed = job.claimed
        if job.permitted is not None:
            charge = _charge(job, job.permitted, outcome)
            others.append({"id": claimed.id, "fence": claimed.fence, **_words(outcome), **charge})
        elif isinstance(outcome, Succeeded):
            ids.append(claimed.id)
            fences.append(claimed.fence)
        else:
            others.append({"id": claimed.id, "fence": claimed.fence, **_words(outcome)})
    return as_numbers(ids), as_numbers(fences), json.dumps(others) if others else None


def _words(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Succeeded():
            return {"outcome": "succeeded"}
        case Failed(error, delay_seconds, traceback=traceback):
            said = {"outcome": "retry", "error": error, "delay_seconds": delay_seconds}
            return said if traceback is None else {**said, "traceback": traceback}
        case Refused(error, reason):
            return {"outcome": "refused", "error": error, "reason": reason}
        case Released(why, delay_seconds):
            return {"outcome": "released", "error": why, "delay_seconds": delay_seconds}
        case Stopped(note):
            return {"outcome": "cancelled", "error": note}


def _charge(job: Job, permit: Permit, outcome: Outcome) -> dict[str, Any]:
    """What the limiter wants to know.

    How the job's own key fared, and from the first job of a call how the call went.
    """
    charge: dict[str, Any] = {
        "queue": job.claimed.queue,
        "kind": job.claimed.kind,
        "credential": permit.credential,
        "used": job.used_units,
        "fared": _ended(outcome),
    }
    if job.claimed.fence == permit.call:
        charge["ended"] = job.call_ended or _ended(outcome)
    return charge


def speak_as_one(jobs: Sequence[Job], ends: Sequence[RunEnd]) -> None:
    """Let the first job of a call say how the call went.

    One good answer makes it a good call, unless it met the bandwidth wall (R13). What was used is
    the call's, whoever reported it.

    Jobs that are all finished elsewhere have said it there (refreshes: store_refreshes.sql).
    """
    if all(isinstance(end, FinishedElsewhere) for end in ends):
        return
    jobs[0].call_ended = min((_ended(seen_in(end)) for end in ends), key=_WEIGHT.index)
    if any(job.used_units is not None for job in jobs):
        for job in jobs:
            job.used_units = job.used_units or 0


def _ended(outcome: Outcome | None) -> str:
    if isinstance(outcome, Succeeded):
        return "ok"
    return outcome.blame.value if isinstance(outcome, Failed) else "ours"


_WEIGHT = ("wall", "ok", "outage", "upstream", "data", "ours")
