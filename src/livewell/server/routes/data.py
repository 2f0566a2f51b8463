"""Reading through: one key with its verdict, and a demand for a better one (X5).

Three cases get one and the same answer: an unknown type, a key that the type cannot have, and a
type that the caller may not read.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from livewell.duration import seconds
from livewell.errors import InvalidOption, UnknownType
from livewell.refresh.read.reads import Read
from livewell.refresh.reading import THROTTLED
from livewell.refresh.why import NOTHING, WhyKey, why_key
from livewell.server.answers.invalid import not_allowed_as
from livewell.server.answers.json_answer import JsonAnswer, TypeKey, TypeName
from livewell.server.answers.problems import Problem, not_found, too_many
from livewell.server.answers.reading import Numbers, ReadingDocument, Verdict, answer, demanded
from livewell.server.auth.caller import Caller
from livewell.server.auth.share_owner import client_of
from livewell.server.depends import Subscriber, TheState, Viewer
from livewell.server.process import ServerProcess
from livewell.server.routes.types import check_name

router = APIRouter(prefix="/v1", tags=["data"])

WAIT_SECONDS_MAX = 30.0
AGE_SECONDS_MAX = 400 * 86_400.0
COLD_SECONDS = 60.0  # unknown keys are counted by the minute

_FOR_OPERATORS = (
    "viewers",
    "error",
    "job_id",
    "lane",
    "n",
    "of_limit",
    "other_id",
    "name",
    "opened",
    "calls",
    "calls_failed",
    "opened_at",
    "cause",
)

Span = Annotated[str | None, Query(max_length=20, examples=["1m"], description='Like "30s", "5m", or seconds.')]


class Demanded(BaseModel):
    """What became of asking for a refresh.

    One of: queued, waiting, due, none, missing, throttled, backed_off, parked, paused.
    """

    demand: str
    throttled: str | None = Field(
        default=None,
        description="Why it cannot be refreshed now: budget, breaker, upstream (it asked for silence), probe, "
        "backed_off, paused, parked.",
    )
    retry_at: datetime | None = Field(default=None, description="When it is worth asking again, if that is known.")


class ReadThrough(ReadingDocument, Demanded):
    """A reading, and what became of the demand for a better one."""


class WhyDocument(BaseModel):
    """Why a key is as fresh or as stale as it is: a word, a sentence, and the times behind them.

    Operators are told more.
    """

    model_config = ConfigDict(extra="allow")

    type: str
    key: str
    reason: str = Field(
        description="fresh, not_watched, failing, rate, breaker …: livewell docs howto/why has them all."
    )
    words: str
    verdict: Verdict | None


# Before the route that reads: a path parameter would take "AAPL/why" for a key.
@router.get("/data/{type}/{key:path}/why", response_model=WhyDocument)
async def why(state: TheState, caller: Viewer, type: TypeName, key: TypeKey) -> Any:  # noqa: A002 - as everywhere
    """Why it is fresh, or what stands in the way of its refresh (X8). Nothing is asked for."""
    check_name(caller, type)
    if "\x00" in key:
        raise not_found()
    found = await why_key(state.pools.operate, type, key)
    if found.reason in NOTHING:
        raise not_found()
    return JsonAnswer(_told(found, operator=caller.may("operate")))


@router.get("/data/{type}/{key:path}", response_model=ReadThrough)
async def read(
    *,
    state: TheState,
    caller: Viewer,
    type: TypeName,  # noqa: A002 - as everywhere
    key: TypeKey,
    max_age: Span = None,
    wait: Span = None,
    numbers: Numbers = "number",
) -> Any:
    """Read what is stored of one key.

    If it is not fresh enough (max_age, or the type's own rule), a refresh is demanded, and waited
    for as long as `wait` says.
    """
    age = span("max_age", max_age, AGE_SECONDS_MAX)
    patience = span("wait", wait, WAIT_SECONDS_MAX) or 0.0
    if age is not None:
        refuse_public(caller, "max_age")
    with state.waits.take(client_of(caller), patience) as allowed:
        found = await read_through(state, caller, type, key, age=age, wait=allowed)
    if found.demand == "throttled" and not found.state.version:
        raise throttled(found)
    return answer(found, numbers, retry_after(found))


@router.post("/data/{type}/{key:path}/refresh", status_code=202, response_model=Demanded)
async def refresh(state: TheState, caller: Subscriber, type: TypeName, key: TypeKey) -> Any:  # noqa: A002 - as everywhere
    """Ask for a refresh now, whatever the age. It is done when limits allow.

    A failure that is backed off is not asked for again before its time.
    """
    refuse_public(caller, "refresh")
    found = await read_through(state, caller, type, key, age=0.0, wait=0.0)
    if found.demand == "throttled":
        raise throttled(found)
    return JsonAnswer(demanded(found), 202)


def _told(found: WhyKey, *, operator: bool) -> dict[str, Any]:
    """Names of ours, other people's number and what an upstream said are for operators."""
    told = asdict(found)
    hidden = () if operator else _FOR_OPERATORS
    shown = {name: value for name, value in told.items() if name not in hidden}
    return {**shown, "words": found.operator_words if operator else found.words}


async def read_through(
    state: ServerProcess, caller: Caller, data_type: str, key: str, *, age: float | None, wait: float
) -> Read:
    """Read for this caller; unknown keys count for their budget."""
    if not caller.may_read(data_type) or not data_type.isidentifier() or not data_type.isascii():
        raise not_found()
    try:
        found = await state.reads.read(
            data_type, key, max_age=age, wait=wait, user=caller.user or caller.origin, client=client_of(caller)
        )
    except (UnknownType, InvalidOption):
        raise not_found() from None
    if found.demand == "cold_budget":
        raise too_many(
            "Too many keys that nobody asked for before; wait a minute.", seconds=COLD_SECONDS, word="cold-keys"
        )
    return found


def throttled(found: Read) -> Problem:
    """There is nothing to show, and nothing can be fetched now: nothing was queued, come back later (X5)."""
    detail = f"It cannot be fetched now: {THROTTLED.get(found.throttled or '', 'try again later')}."
    return Problem(503, detail, word="throttled", headers=retry_after(found))


def retry_after(found: Read) -> dict[str, str]:
    """The header; none where nobody knows."""
    if found.retry_seconds is None:
        return {}
    return {"Retry-After": str(max(1, math.ceil(found.retry_seconds)))}


def refuse_public(caller: Caller, field: str) -> None:
    """Raise if the caller has a public key.

    A public key stands in a web page, so anybody can use it. It must not spend the upstream's quota
    by asking for more than the type's own rule gives.
    """
    if caller.kind == "public":
        raise Problem(403, "A public key gets what the type's own rule calls fresh.", word="public-key", field=field)


def span(field: str, text: str | None, most: float) -> float | None:
    """A length of time within its bound."""
    if text is None:
        return None
    try:
        number = seconds(float(text) if text.replace(".", "", 1).isdigit() and text.isascii() else text, field)
        if number > most:
            raise InvalidOption("")
    except InvalidOption:
        bound = f"{most / 86_400:g} days" if most >= 86_400 else f"{most:g} seconds"
        examples = '"30s", "5m", "2h", "1d"' if most >= 86_400 else '"250ms", "2s", "30s"'
        allowed = f"0 to {bound}, as {examples} or a number of seconds"
        raise Problem(
            400,
            not_allowed_as(field, text),
            word="invalid",
            field=f"query.{field}",
            allowed=allowed,
        ) from None
    return number
