"""Jobs, queues and dead letters, for operators: look, pause, cancel, mend.

Payloads may hold anything, so nobody else sees them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from livewell.model import Cancelled
from livewell.queue.admin import QueueAdmin
from livewell.queue.job_filter import STATES, JobFilter
from livewell.server.answers.json_answer import After, JobId, JsonAnswer, Limit, cursor, number_after, page
from livewell.server.answers.problems import Problem, not_found
from livewell.server.depends import Operator, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.types import Page, cursor_place

router = APIRouter(prefix="/v1", tags=["jobs"])

QueueName = Annotated[str, Field(max_length=100)]
Asked = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]
AskedKey = Annotated[str | None, Query(max_length=512, pattern=r"^[^\x00]*$")]
AskedTime = Annotated[
    str | None,
    Query(max_length=60, description="An age such as 90s, 30min, 2h or 7d, or an instant; of when a job was made."),
]


class JobList(Page):
    """A part of the jobs that match; `looked` is how many were looked at for it."""

    looked: int


class Record(BaseModel):
    """A job, wherever it is now."""

    model_config = ConfigDict(extra="allow")

    id: int
    queue: str
    task: str
    state: str


class WhyDocument(BaseModel):
    """Why a job is not running: the first thing that stands in its way, as a word and in a sentence."""

    reason: str
    words: str


class CancelDocument(BaseModel):
    """cancelled: it never ran; requested: its worker is told; finished: it was too late."""

    answer: Literal["cancelled", "requested", "finished"]


class RetryDocument(BaseModel):
    """Whether it will run now.

    false: it is neither delayed nor a dead letter, or its key is taken.
    """

    retried: bool


class Redrive(BaseModel):
    """Which dead letters shall have another life: by ids, queue or task.

    `all` must be true when none of them is given.
    """

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Field(min_length=1, max_length=1000)] | None = None
    queue: Annotated[str, Field(max_length=100, pattern=r"^[^\x00]*$")] | None = None
    task: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] | None = None
    all: bool = False


class Redriven(BaseModel):
    """How many went, and how many stayed because a live job has their key.

    At most 1,000 go at once.
    """

    redriven: int
    kept: int


@router.get("/queues", response_model=Page)
async def queues(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Queues with counts, workers and pace, by name."""
    begin = cursor_place(after)
    rows = [row for row in await _queues(state).queues() if row["name"] > begin][:limit]
    return JsonAnswer(page(rows, limit, rows[-1]["name"] if rows else None))


@router.post("/queues/{name}/pause", status_code=204)
async def pause(state: TheState, caller: Operator, name: QueueName) -> Response:  # noqa: ARG001 - the scope is the point
    """Claim nothing more from it; what runs may end."""
    return await _pause(state, name, paused=True)


@router.post("/queues/{name}/resume", status_code=204)
async def resume(state: TheState, caller: Operator, name: QueueName) -> Response:  # noqa: ARG001 - the scope is the point
    """Claim from it again."""
    return await _pause(state, name, paused=False)


@router.get("/jobs", response_model=JobList)
async def jobs(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    queue: Asked = None,
    task: Asked = None,
    only: Annotated[Literal[*STATES] | None, Query(alias="state")] = None,  # type: ignore[valid-type]
    group: AskedKey = None,
    key: AskedKey = None,
    batch: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    since: AskedTime = None,
    until: AskedTime = None,
    order: Annotated[Literal["oldest", "newest"], Query(description="Which come first.")] = "oldest",
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Jobs by id, without their payloads: live ones, or with `state` those that ended.

    One call looks at 20,000 jobs at most. A page may have fewer items than `limit`, or none, and
    still a `next`: only a `next` of null is the end.
    """
    wanted = JobFilter(queue, task, only, group, key, since, until, batch)
    found = await _queues(state).find(wanted, after=id_place(after), newest=order == "newest", limit=limit)
    following = None if found.next is None else cursor(found.next)
    return JsonAnswer({"items": found.rows, "next": following, "looked": found.looked})


@router.get("/jobs/{id}", response_model=Record)
async def job(state: TheState, caller: Operator, id: JobId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """One job with its payload."""
    return JsonAnswer(await _queues(state).job(id))


@router.get("/jobs/{id}/why", response_model=WhyDocument)
async def why(state: TheState, caller: Operator, id: JobId) -> Any:  # noqa: A002, ARG001 - see above
    """Why it is not running."""
    found = await _queues(state).why(id)
    if found.reason == "unknown":
        raise not_found()
    return JsonAnswer({"reason": found.reason, "words": found.words})


@router.post("/jobs/{id}/cancel", response_model=CancelDocument)
async def cancel(state: TheState, caller: Operator, id: JobId) -> Any:  # noqa: A002, ARG001 - see above
    """Cancel it at once while it waits; ask its worker while it runs."""
    answer = await _queues(state).cancel(id)
    if answer is Cancelled.UNKNOWN:
        raise not_found()
    return JsonAnswer({"answer": answer.value})


@router.post("/jobs/{id}/retry", response_model=RetryDocument)
async def retry(state: TheState, caller: Operator, id: JobId) -> Any:  # noqa: A002, ARG001 - see above
    """Run a delayed job now, or give a dead letter another life."""
    return JsonAnswer({"retried": await _queues(state).retry(id)})


@router.get("/dead", response_model=Page)
async def dead(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    queue: Asked = None,
    task: Asked = None,
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Dead letters by id."""
    rows = await _queues(state).dead(queue=queue, task=task, after=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.post("/dead/redrive", response_model=Redriven)
async def redrive(state: TheState, caller: Operator, body: Redrive) -> Any:  # noqa: ARG001 - the scope is the point
    """Give dead letters another life, at most 1,000 in one call."""
    if body.ids is None and body.queue is None and body.task is None and not body.all:
        raise Problem(400, "Which ones?", word="invalid", field="body", allowed='ids, queue or task, or "all": true')
    redriven, kept = await _queues(state).redrive(body.ids, queue=body.queue, task=body.task)
    return JsonAnswer({"redriven": redriven, "kept": kept})


async def _pause(state: TheState, name: str, *, paused: bool) -> Response:
    if "\x00" in name:
        raise not_found()
    await _queues(state).pause(name, paused=paused)
    return Response(status_code=204)


def id_place(after: str | None) -> int:
    """Where a list by id goes on."""
    try:
        return number_after(after)
    except ValueError:
        raise Problem(
            400,
            "This is not a cursor of ours.",
            word="invalid",
            field="query.after",
            allowed="`next` of the page before",
        ) from None


def _queues(state: ServerProcess) -> QueueAdmin:
    return QueueAdmin(state.pools.operate, state.nudger)
