"""The outbox, for operators: sinks, keys that wait, dead events, one event and why, replays, and emitting by hand.

Payloads may hold anything, so nobody else sees them. Each act is recorded with its caller.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from livewell.outbox.admin import BLOCK_STATES, REASONS, REPLAY_RATE, OutboxAdmin
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, cursor, page, place
from livewell.server.answers.problems import Problem, not_found
from livewell.server.depends import Operator, TheState
from livewell.server.process import ServerProcess
from livewell.server.routes.jobs import id_place
from livewell.server.routes.types import Page, cursor_place

router = APIRouter(prefix="/v1", tags=["outbox"])

SinkName = Annotated[str, Path(max_length=100, description="The name of a sink.", examples=["shop"])]
EventId = Annotated[
    str, Path(max_length=30, description="The id that receivers see, or its number.", examples=["0f3c9a1b-1042"])
]
ReplayId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The number of a replay.")]
AskedSink = Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")]
AskedTopic = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]
Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
Key = Annotated[str, Field(max_length=512, pattern=r"^[^\x00]*$")]

_PAGES_MAX = 10  # of a hundred letters each, in one call


class Stats(BaseModel):
    """All sinks together, and each. A count of 10,000 is at least that many."""

    model_config = ConfigDict(extra="allow")

    waiting: int
    in_flight: int
    blocked: int
    parked: int
    dead: int
    oldest_at: datetime | None
    sinks: list[dict[str, Any]]


class EventDocument(BaseModel):
    """An event as it leaves, and how far it is at each sink."""

    model_config = ConfigDict(extra="allow")

    id: str
    topic: str
    payload: str
    sinks: list[dict[str, Any]]


class WhyEvent(BaseModel):
    """One answer for each sink: what stands in the way, and the next step."""

    items: list[dict[str, Any]]


class Letters(BaseModel):
    """Which dead events: by ids, or all that match. `all` must be true when nothing else is given."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"sink": "shop", "reason": "attempts"}]})

    ids: Annotated[list[Annotated[str, Field(max_length=30)]], Field(min_length=1, max_length=1000)] | None = None
    sink: Text | None = None
    topic: Text | None = None
    reason: Literal[*REASONS] | None = None  # type: ignore[valid-type] # the list of the admin
    all: bool = False


class Redriven(BaseModel):
    """How many went; at most 1,000 of those that match go at once."""

    redriven: int


class Discarded(BaseModel):
    """How many there were; at most 1,000 of those that match go at once."""

    discarded: int


class NewEvent(BaseModel):
    """An event to emit. `payload`: any JSON; of a `payload_text` every digit is kept."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"topic": "orders.created", "key": "42", "payload": {"total": 12.5}}]},
    )

    topic: Text
    payload: Any = None
    payload_text: Annotated[str, Field(max_length=1_048_576)] | None = None
    key: Key | None = None
    tenant: Text = ""


class Emitted(BaseModel):
    """The id that receivers see."""

    id: str


class NewReplay(BaseModel):
    """History to deliver once more. Without `end` it is until now; `rate` is events a second at most.

    A `request_key` that was used before answers the replay that it began.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"sink": "shop", "topic": "orders.created", "start": "2026-11-18T00:00:00Z"}]},
    )

    sink: Text
    start: datetime
    end: datetime | None = None
    topic: Text | None = None
    tenant: Text | None = None
    key: Key | None = None
    rate: Annotated[float, Field(ge=0.1, le=10_000)] = REPLAY_RATE
    request_key: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")] | None = None


class Begun(BaseModel):
    """The number of the replay."""

    id: int


class Cancelled(BaseModel):
    """False: it had ended before."""

    cancelled: bool


@router.get("/outbox", response_model=Stats)
async def stats(state: TheState, caller: Operator) -> Any:  # noqa: ARG001 - the scope is the point
    """What waits, what is dead, and who delivers."""
    return JsonAnswer(await _admin(state).stats())


@router.get("/outbox/sinks", response_model=Page)
async def sinks(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Sinks by name: policy, what waits, what blocks, who delivers."""
    begin = cursor_place(after)
    rows = [row for row in await _admin(state).sinks() if row["name"] > begin][:limit]
    return JsonAnswer(page(rows, limit, rows[-1]["name"] if rows else None))


@router.get("/outbox/sinks/{name}", response_model=dict[str, Any])
async def sink(state: TheState, caller: Operator, name: SinkName) -> Any:  # noqa: ARG001 - the scope is the point
    """One sink, with the tenants that have waited longest and the bound within which each has its turn."""
    return JsonAnswer(await _admin(state).sink(_checked(name)))


@router.post("/outbox/sinks/{name}/pause", status_code=204)
async def pause(state: TheState, caller: Operator, name: SinkName) -> Response:  # noqa: ARG001 - the scope is the point
    """Deliver nothing more to it; events are kept meanwhile."""
    await _admin(state).pause(_checked(name))
    return Response(status_code=204)


@router.post("/outbox/sinks/{name}/resume", status_code=204)
async def resume(state: TheState, caller: Operator, name: SinkName) -> Response:  # noqa: ARG001 - the scope is the point
    """Deliver to it again."""
    await _admin(state).resume(_checked(name))
    return Response(status_code=204)


@router.get("/outbox/topics", response_model=Page)
async def topics(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Topics by name, with the sinks that take each."""
    rows = await _admin(state).topics(after=cursor_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["name"] if rows else None))


@router.get("/outbox/blocks", response_model=Page)
async def blocks(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    sink: AskedSink = None,
    only: Annotated[Literal[*BLOCK_STATES] | None, Query(alias="state")] = None,  # type: ignore[valid-type] # the list of the admin
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Keys that wait: the event that blocks each, and how many are set aside behind it.

    One call looks at 10,000 keys at most: only a `next` of null is the end.
    """
    found = await _admin(state).blocks(sink=sink, state=only, after=cursor_place(after) or None, limit=limit)
    return JsonAnswer({"items": found.rows, "next": None if found.next is None else cursor(found.next)})


@router.get("/outbox/dead", response_model=Page)
async def dead(
    *,
    state: TheState,
    caller: Operator,  # noqa: ARG001 - the scope is the point
    sink: AskedSink = None,
    topic: AskedTopic = None,
    reason: Annotated[Literal[*REASONS] | None, Query()] = None,  # type: ignore[valid-type] # the list of the admin
    limit: Limit = 50,
    after: After = None,
) -> Any:
    """Dead events by number."""
    rows = await _admin(state).dead(sink=sink, topic=topic, reason=reason, after=_letter(after), limit=limit)
    return JsonAnswer(page(rows, limit, f"{rows[-1]['number']} {rows[-1]['sink']}" if rows else None))


@router.get("/outbox/dead/groups", response_model=Page)
async def dead_groups(state: TheState, caller: Operator, limit: Limit = 50) -> Any:  # noqa: ARG001 - the scope is the point
    """Dead events by sink, topic and reason, the largest groups first."""
    return JsonAnswer(page(await _admin(state).dead_groups(limit=limit), limit, None))


@router.post("/outbox/redrive", response_model=Redriven)
async def redrive(state: TheState, caller: Operator, body: Letters) -> Any:  # noqa: ARG001 - the scope is the point
    """Give dead events another life, in front of what waits behind them."""
    admin = _admin(state)
    if body.ids is not None:
        return JsonAnswer({"redriven": await admin.redrive(body.ids, sink=body.sink)})
    return JsonAnswer({"redriven": await admin.redrive_all(**_matching(body), pages=_PAGES_MAX)})


@router.post("/outbox/discard", response_model=Discarded)
async def discard(state: TheState, caller: Operator, body: Letters) -> Any:  # noqa: ARG001 - the scope is the point
    """Delete dead events for good; what is parked behind them goes, in order."""
    admin = _admin(state)
    if body.ids is not None:
        return JsonAnswer({"discarded": await admin.discard(body.ids, sink=body.sink)})
    return JsonAnswer({"discarded": await admin.discard_all(**_matching(body), pages=_PAGES_MAX)})


@router.post("/outbox/events", response_model=Emitted, status_code=201)
async def emit(state: TheState, caller: Operator, body: NewEvent) -> Any:  # noqa: ARG001 - the scope is the point
    """Emit one event by hand. Programs emit in their own transactions."""
    if (body.payload_text is None) == ("payload" not in body.model_fields_set):
        raise Problem(400, "What does it hold?", word="invalid", field="body", allowed="payload or payload_text")
    text = _text(body)
    made = await _admin(state).emit(body.topic, text, key=body.key, tenant=body.tenant)
    return JsonAnswer({"id": made}, 201)


@router.get("/outbox/events/{id}", response_model=EventDocument)
async def event(state: TheState, caller: Operator, id: EventId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """One event with its payload, and how far it is at each sink."""
    return JsonAnswer(await _admin(state).event(_checked(id)))


@router.get("/outbox/events/{id}/why", response_model=WhyEvent)
async def why(state: TheState, caller: Operator, id: EventId, sink: AskedSink = None) -> Any:  # noqa: A002, ARG001 - see above
    """Why it has not arrived, and the next step; without `sink` at every sink."""
    return JsonAnswer({"items": await _admin(state).why(_checked(id), sink=sink)})


@router.get("/outbox/replays", response_model=Page)
async def replays(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Replays, the newest first, with how far each is."""
    rows = await _admin(state).replays(before=id_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["id"] if rows else None))


@router.post("/outbox/replays", response_model=Begun, status_code=201)
async def begin_replay(state: TheState, caller: Operator, body: NewReplay) -> Any:  # noqa: ARG001 - the scope is the point
    """Deliver past events once more, with the same ids, behind what is new."""
    return JsonAnswer({"id": await _admin(state).begin_replay(**body.model_dump())}, 201)


@router.delete("/outbox/replays/{id}", response_model=Cancelled)
async def cancel_replay(state: TheState, caller: Operator, id: ReplayId) -> Any:  # noqa: A002, ARG001 - as everywhere; the scope is the point
    """End a replay; what it has fed is still delivered."""
    return JsonAnswer({"cancelled": await _admin(state).cancel_replay(id)})


def _admin(state: ServerProcess) -> OutboxAdmin:
    return OutboxAdmin(state.pools.operate, state.nudger)


def _checked(name: str) -> str:
    if "\x00" in name:
        raise not_found()
    return name


def _matching(body: Letters) -> dict[str, str | None]:
    matching = {"sink": body.sink, "topic": body.topic, "reason": body.reason}
    if not body.all and not any(matching.values()):
        raise Problem(
            400, "Which ones?", word="invalid", field="body", allowed='ids, sink, topic or reason, or "all": true'
        )
    return matching


def _text(body: NewEvent) -> str:
    text = json.dumps(body.payload, ensure_ascii=False) if body.payload_text is None else body.payload_text
    try:
        text.encode()
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Problem(400, "This is not JSON.", word="invalid", field="body.payload_text", allowed="JSON") from None
    return text


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _letter(after: str | None) -> tuple[int, str] | None:
    try:
        text = place(after)
        if not text:
            return None
        number, _, name = text.partition(" ")
        if not (number.isascii() and number.isdigit() and int(number) < 2**63 and name):
            raise ValueError("not a cursor")
        return int(number), name
    except ValueError:
        raise _no_cursor() from None


def _no_cursor() -> Problem:
    return Problem(
        400,
        "This is not a cursor of ours.",
        word="invalid",
        field="query.after",
        allowed="`next` of the page before",
    )
