"""Tell people who read the log about failed jobs.

A line says which job and which attempt failed and what comes next, with the traceback.

Only failures come here, so successes pay nothing. The first few of a cause (task, type of the
error, place) in a minute are told in full; then only how many more there were.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from livewell.model import Backoff, Failed, FinishedElsewhere, Outcome, Refused, Released, RunEnd
from livewell.queue.job import Job
from livewell.queue.outcomes import seen_in
from livewell.telemetry.repeats import Repeats

log = structlog.get_logger("livewell.worker")


class FailureLog:
    """The log of failures of one worker.

    `backoffs`: the back-off of each queue, as far as it is known.
    """

    def __init__(self) -> None:
        self.backoffs: Mapping[str, Backoff] = {}
        self._repeats = Repeats()
        self._last: Outcome | None = None

    def tell(self, job: Job, end: RunEnd) -> None:
        """Log what came of a job, unless it simply ended."""
        ended = isinstance(end, FinishedElsewhere)
        match outcome := seen_in(end):
            case Failed(error, cause=cause, traceback=traceback):
                if ended and traceback is None:
                    return  # its handler has ended the job itself, and said what there was to say
                self._tell(job, outcome, error, cause, traceback, ended=ended)
            case Refused(error):
                self._tell(job, outcome, error, outcome.reason, None, ended=ended)
            case Released(why):
                if self._repeats.passes(f"{job.claimed.kind}: released"):
                    log.info("job released", **_which(job), why=why, next=_again(outcome.delay_seconds))

    def flush(self, *, everything: bool = False) -> None:
        """Log how many were not told one by one, of causes whose minute is over."""
        for cause, n in self._repeats.overdue(everything=everything):
            log.warning("more failures of the same cause", cause=cause, jobs=n)

    def _tell(
        self, job: Job, outcome: Failed | Refused, error: str, cause: str, traceback: str | None, *, ended: bool
    ) -> None:
        cause = f"{job.claimed.kind}: {cause or error[:100]}"
        same, self._last = outcome is self._last, outcome
        if same:
            self._repeats.hold_back(cause)  # of one call of many jobs the first speaks for all
            return
        if not self._repeats.passes(cause):
            return
        dead, what = self._next(job, outcome, ended=ended)
        told = {"exception": traceback} if traceback is not None else {}
        (log.error if dead else log.warning)("job failed", **_which(job), next=what, error=error, **told)

    def _next(self, job: Job, outcome: Failed | Refused, *, ended: bool) -> tuple[bool, str]:
        claimed = job.claimed
        if ended:
            return False, "nothing: the job had ended in its own transaction before its handler failed"
        if isinstance(outcome, Refused) or claimed.attempt >= claimed.max_attempts:
            return True, "dead letter"
        if outcome.delay_seconds is not None:
            return False, _again(outcome.delay_seconds)
        backoff = self.backoffs.get(claimed.queue)
        if backoff is None:
            return False, "retry after the queue's back-off"
        seconds = min(backoff.cap_seconds, backoff.base_seconds * 2.0 ** min(claimed.attempt - 1, 30))
        return False, f"retry in about {seconds:.3g} s"


def _again(seconds: float) -> str:
    return f"retry in {seconds:.3g} s" if seconds > 0 else "retry at once"


def _which(job: Job) -> dict[str, object]:
    claimed = job.claimed
    return {
        "job": claimed.id,
        "task": claimed.kind,
        "queue": claimed.queue,
        "attempt": f"{claimed.attempt} of {claimed.max_attempts}",
    }
