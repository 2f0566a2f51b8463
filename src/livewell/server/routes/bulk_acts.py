"""Acts on all that match, over HTTP: count, ask for it, follow it, cancel it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from livewell.queue.bulk_acts import ALL, BulkAction, BulkActs, Ended, How
from livewell.queue.job_filter import JobFilter
from livewell.server.answers.json_answer import After, JobId, JsonAnswer, Limit, page
from livewell.server.depends import Operator, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page

router = APIRouter(prefix="/v1", tags=["jobs"])

Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


class Which(BaseModel):
    """Everything matches unless a field says otherwise.

    since, until: when a job was made, or a dead letter died.
    """

    model_config = ConfigDict(extra="forbid")

    queue: Text | None = None
    task: Text | None = None
    state: Literal["delayed", "held", "ready", "running"] | None = None
    group: Text | None = None
    key: Text | None = None
    batch: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    reason: Literal["attempts", "refused", "payload", "lost"] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None

    def filter(self) -> JobFilter:
        """As acts take it."""
        return JobFilter(**self.model_dump(mode="json"))


class Count(BaseModel):
    """What would be done, and to which. cancel and hasten: live jobs; redrive and discard: dead letters."""

    model_config = ConfigDict(extra="forbid")

    action: BulkAction
    filter: Which


class Ask(Count):
    """`expected` is the number that was counted: if more match by now, nothing is done.

    Where `how` was not exact nobody knows the number: then it is the words "all of them", and a
    number is refused. `key` is yours: repeated, it answers the act that it began; for another action
    or filter it is refused. `before`: when you counted; what was made or died later is not touched.
    """

    expected: Annotated[int, Field(ge=0, le=10_000)] | Literal["all of them"]
    key: Text | None = None
    before: AwareDatetime | None = None


class Counted(BaseModel):
    """exact; more than n; or looked: n of those that were looked at, which were not all."""

    n: int
    how: How


class AskedFor(BaseModel):
    """The act that does it.

    new: false if it was asked for already. twin: it is another request's, unfinished: it does not
    touch what was made or died after `before`; `expected` and `how` are what was counted for it.
    """

    id: int
    new: bool
    twin: bool
    before: datetime
    expected: int
    how: How


class ActDocument(BaseModel):
    """An act on many, with its progress.

    share: of what was counted where `how` is exact, else of the ids that were to be looked at.
    """

    model_config = ConfigDict(extra="allow")

    id: int
    action: BulkAction
    state: Literal["running", "done", "cancelled", "failed"]
    expected: int
    how: How
    done: int
    skipped: int
    share: float
    asked_by: str
    asked_at: datetime


class EndedDocument(BaseModel):
    """cancelled; ended: it had ended already."""

    answer: Ended


@router.post("/acts/count", response_model=Counted)
async def count(state: TheState, caller: Operator, body: Count) -> Any:  # noqa: ARG001 - the scope is the point
    """How many match; nothing is changed."""
    found = await _acts(state).count(body.action, body.filter.filter())
    return JsonAnswer({"n": found.n, "how": found.how})


@router.post("/acts", response_model=AskedFor, status_code=202)
async def ask(state: TheState, caller: Operator, body: Ask) -> Any:  # noqa: ARG001 - the scope is the point
    """Ask for an act on all that match; workers do it."""
    expected = None if body.expected == ALL else int(body.expected)
    begun = await _acts(state).confirm(
        body.action, body.filter.filter(), expected=expected, key=body.key, before=body.before
    )
    answer = {
        "id": begun.id,
        "new": begun.is_new,
        "twin": begun.is_twin,
        "before": begun.before_at,
        "expected": begun.found.n,
        "how": begun.found.how,
    }
    return JsonAnswer(answer, status_code=202)


@router.get("/acts", response_model=Page)
async def list_acts(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Acts on many, the newest first."""
    rows = await _acts(state).list(before=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.get("/acts/{id}", response_model=ActDocument)
async def show(state: TheState, caller: Operator, id: JobId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """One act with its progress."""
    return JsonAnswer(await _acts(state).show(id))


@router.post("/acts/{id}/cancel", response_model=EndedDocument)
async def cancel(state: TheState, caller: Operator, id: JobId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """Stop it; what is done stays done."""
    return JsonAnswer({"answer": await _acts(state).cancel(id)})


def _acts(state: ServerProcess) -> BulkActs:
    return BulkActs(state.pools.operate, state.nudger)
