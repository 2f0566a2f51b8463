"""What became of this job? Its life as a timeline, why it stands where it does, what is in it.

created ──▶ due ──▶ claimed ──▶ progress ──▶ succeeded, cancelled, failed
             ▲         │
             └─retry───┘
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from livewell.errors import JobNotFound
from livewell.model import Cancelled
from livewell.queue.job_filter import LIVE
from livewell.queue.why import Why
from livewell.server.dashboard.pages.payload import has_secrets, masked, record_reveal
from livewell.server.dashboard.pages.queues import acting, admin
from livewell.server.dashboard.visit import Answer, Done, Loaded, Panel, Visit, loaded
from livewell.telemetry.control_characters import printable
from livewell.telemetry.logs import hide
from livewell.words import span

Step = tuple[str, datetime | None, str, str]  # word, when, tone, note

_LIMITED = ("rate", "budget", "breaker", "probe", "upstream", "concurrency", "restart")
_FAULTS = ("no_task", "no_credential", "suspect")
_STEPS = {  # from a reason to words and an address
    "behind": ("Jobs that wait with it, oldest first", "/work/jobs?{queue}&state=ready&order=oldest"),
    "queue_limit": ("Jobs of its queue that run", "/work/jobs?{queue}&state=running"),
    "no_worker": ("Workers", "/work#workers"),
    **dict.fromkeys(_LIMITED, ("Will the limits hold?", "/limits")),
    **dict.fromkeys(_FAULTS, ("What mends it?", "/doctor")),
}
_NO_PAYLOAD = "The payload of a job that ended well is not kept."
_TONES = {"running": "fresh", "succeeded": "fresh", "failed": "bad"}
_DIED = {
    "attempts": "every attempt failed",
    "refused": "its task refused it for good",
    "payload": "its task cannot read its payload",
    "lost": "too many workers were lost while they held it",
}


async def panels(visit: Visit) -> list[Panel]:
    """Where it stands with what can be done, its life, what is in it, what went wrong."""
    number = visit.number("id")
    job = await admin(visit).job(number)

    async def now() -> Loaded:
        why = await admin(visit).why(number)
        if not visit.may_operate:
            why = why.without_errors()
        before, since, after = why.words.partition(why.since_words or "\x00")
        return loaded(
            job=job,
            words=(f"{before[:1].upper()}{before[1:]}", f"{after}."),
            since=why.since if since else None,
            step=next_step(why, job),
            tone=_tone(job),
            is_paused=why.reason == "paused",
        )

    async def life() -> Loaded:
        links = await admin(visit).links(number)
        shown = job if visit.may_operate else {**job, "error": None, "progress_note": None}
        return loaded(job=shown, links=links, steps=list(timeline(shown, links)))

    async def payload() -> Loaded:
        text = job["payload"]
        return loaded(
            payload=masked(text), is_revealed=False, has_secrets=has_secrets(text), job=job, is_empty=text is None
        )

    async def error() -> Loaded:
        is_note = job["state"] in ("succeeded", "cancelled")
        found, trace = hide(job["error"]), hide(job["traceback"])
        errors = hide(job["errors"])
        return loaded(
            error=found, traceback=trace, errors=errors, is_note=is_note, is_empty=not (found or trace or errors)
        )

    return [
        Panel("now", f"Job {number}", "job_now.html", now),
        Panel("life", "Its life", "job_life.html", life),
        Panel(
            "payload",
            "Payload",
            "job_payload.html",
            payload,
            _NO_PAYLOAD,
            wide=False,
        ),
        Panel("error", "Errors", "job_error.html", error, "None: no attempt has failed.", wide=False),
    ]


async def cancel(visit: Visit) -> Done:
    """Cancel a waiting job at once, ask the worker of a running one.

    The form says in which state the job was seen: to cancel one that has begun means something else.
    """
    number, seen = visit.number("id"), visit.form.get("seen")
    answer = await acting(visit).cancel(number, seen=seen[:20] if seen else None)
    if answer is Cancelled.UNKNOWN:
        raise JobNotFound(f"job {number}: no live job, dead letter or finished job has that id any more")
    words = {
        Cancelled.NOW: f"Job {number} is cancelled: it does not run.",
        Cancelled.REQUESTED: f"The worker of job {number} is told to end it.",
        Cancelled.CHANGED: f"Job {number} is not {(seen or '')[:20]} any more: nothing was done. Look at it again.",
        Cancelled.TOO_LATE: f"Job {number} had ended already: nothing was done.",
    }
    return Done(words[answer], f"/work/jobs/{number}")


async def reveal(visit: Visit) -> Answer:
    """Show the payload as it is stored, secrets included; who looked is written down."""
    number = visit.number("id")
    job = await acting(visit).job(number)
    await record_reveal(visit, "jobs.reveal", f"job {number}")

    async def payload() -> Loaded:
        return loaded(
            payload=job["payload"], is_revealed=True, has_secrets=False, job=job, is_empty=job["payload"] is None
        )

    title = f"Payload of job {number}"
    return Answer(title, [Panel("payload", title, "job_payload.html", payload, _NO_PAYLOAD)])


async def retry(visit: Visit) -> Done:
    """Run a delayed job now, or give a dead letter another life.

    The form says in which state the job was seen: if it is in another one by now, nothing is done.
    """
    number, seen = visit.number("id"), visit.form.get("seen")
    job = await acting(visit).job(number)
    here = f"/work/jobs/{number}"
    if seen and seen != job["state"]:
        return Done(f"Job {number} was {seen[:20]} and is {job['state']} by now: nothing was done.", here)
    if await acting(visit).retry(number):
        return Done(f"Job {number} runs as soon as a worker is free.", here)
    if job["state"] == "failed":
        return Done(f"Another live job has the key of job {number}: nothing was done.", here)
    return Done(f"Job {number} is neither delayed nor a dead letter: nothing was done.", here)


def next_step(why: Why, job: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where to go from the reason: words and address."""
    if why.other_id is not None and why.reason in ("held_key", "held_group", "key_limit"):
        return f"Job {why.other_id}", f"/work/jobs/{why.other_id}"
    found = _STEPS.get(why.reason)
    return (found[0], found[1].format(queue=urlencode({"queue": job["queue"]}))) if found else None


def timeline(job: Mapping[str, Any], links: Mapping[str, Any]) -> Iterator[Step]:
    """What happened to a job and what comes next, in order."""
    state = job["state"]
    yield "Created", job["created_at"], "none", f"in queue {job['queue']}"
    if job["lost"]:
        workers = "worker was" if job["lost"] == 1 else "workers were"
        yield "Lost", None, "warn", f"{job['lost']} {workers} lost while holding it; that is no attempt"
    if state in LIVE:
        yield from _live(job, links)
        return
    if job["started_at"]:
        worker = links.get("worker_id")
        by = f" by worker {worker}" if worker else ""
        yield "Claimed", job["started_at"], "none", f"{_attempt(job)}{by}"
    yield from _ended(job)


def _live(job: Mapping[str, Any], links: Mapping[str, Any]) -> Iterator[Step]:
    state = job["state"]
    if job["attempt"] and state != "running":
        yield "Tried", job["started_at"], "warn", f"{_attempt(job)}, and it failed"
    if state == "delayed":
        yield ("Next try" if job["attempt"] else "Due"), job["run_at"], "none", "it waits for that time"
    elif state == "held":
        behind = "its key" if links.get("held_by") == "key" else "its group"
        yield "Held", None, "warn", f"it waits for other jobs with {behind}"
    else:
        yield "Due", job["run_at"], "none", ""
    if state == "ready":
        yield "Ready", None, "none", "it waits for a worker"
    if state == "running":
        left = links.get("lease_left_seconds")
        is_gone = left is None or left < 0
        note = ", whose lease ran out: another worker takes the job back" if is_gone else ""
        worker = printable(job["worker"] or "a worker that is gone")
        yield "Claimed", job["started_at"], "bad" if is_gone else "fresh", f"by {worker}{note}; {_attempt(job)}"
        if job["progress"] or job["progress_note"]:
            yield "Progress", None, "fresh", f"{job['progress']} % {printable(job['progress_note'] or '')}"
        if links.get("deadline_at"):
            yield "Must end by", links["deadline_at"], "none", "then it is taken back"
    if job["cancel_requested"]:
        yield "Cancel asked", None, "warn", "its worker is told to end it"


def _ended(job: Mapping[str, Any]) -> Iterator[Step]:
    ran = ""
    if job["started_at"] and job["finished_at"]:
        ran = f"after {span((job['finished_at'] - job['started_at']).total_seconds())}"
    if job["state"] == "failed":
        yield "Failed for good", job["finished_at"], "bad", _DIED.get(job["reason"], job["reason"] or "")
    else:
        yield job["state"].capitalize(), job["finished_at"], _tone(job), ran


def _attempt(job: Mapping[str, Any]) -> str:
    of_attempts = f" of {job['max_attempts']}" if job["max_attempts"] else ""
    return f"attempt {job['attempt']}{of_attempts}"


def _tone(job: Mapping[str, Any]) -> str:
    return _TONES.get(job["state"], "none")
