"""Types: what can be watched, and what an operator may change of it without a file.

A type that the caller may not read is answered like a type that does not exist.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import Response

from livewell.queue.admin import QueueAdmin
from livewell.refresh.registry.admin import TypeAdmin
from livewell.server.answers.json_answer import After, JsonAnswer, Limit, TypeKey, TypeName, page, place
from livewell.server.answers.problems import Problem, not_found
from livewell.server.auth.caller import Caller
from livewell.server.depends import Operator, TheState, Viewer
from livewell.server.process import ServerProcess

router = APIRouter(prefix="/v1", tags=["types"])

_SHOWN = (
    "name",
    "title",
    "upstream",
    "ttl_seconds",
    "strategy",
    "cron",
    "zone",
    "rule",
    "rows_kind",
    "key_pattern",
    "columns",
    "paused",
    "parked",
    "version",
    "applied_at",
)

Written = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
Key = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Keys = Annotated[list[Key], Field(max_length=1000)]
Ttl = Annotated[Written | Annotated[float, Field(strict=True)], Field(description='"5m", "1d", or seconds.')]


class Page(BaseModel):
    """A page of a list; `next` is the cursor of the next one."""

    items: list[dict[str, Any]]
    next: str | None


class Change(BaseModel):
    """What may be changed; it holds until the type's file is applied again."""

    model_config = ConfigDict(extra="forbid")

    ttl: Ttl | None = None
    strategy: Literal["on_demand", "scheduled"] | None = None
    cron: Written | None = None
    zone: Written | None = None
    paused: bool | None = None


class OwnTtl(BaseModel):
    """A key's time to live."""

    model_config = ConfigDict(extra="forbid")

    ttl: Ttl


class KeyTtl(BaseModel):
    """How long a key stays fresh, and whether that is its own."""

    ttl_seconds: float
    own: bool


class Universe(BaseModel):
    """Keys that a scheduled type shall walk through, and those it shall leave out."""

    model_config = ConfigDict(extra="forbid")

    add: Keys = Field(default_factory=list)
    remove: Keys = Field(default_factory=list)


class Walked(BaseModel):
    """How many keys are new to the walk, and how many have left it."""

    added: int
    removed: int


@router.get("/types", response_model=Page)
async def types(state: TheState, caller: Viewer, limit: Limit = 50, after: After = None) -> Any:
    """Every type that the caller may read, by name."""
    begin = cursor_place(after)
    rows = [row for row in await _registry(state).types() if row["name"] > begin and caller.may_read(row["name"])]
    return JsonAnswer(page([_shown(row) for row in rows[:limit]], limit, rows[:limit][-1]["name"] if rows else None))


@router.get("/types/{name}", response_model=dict[str, Any])
async def type_of(state: TheState, caller: Viewer, name: TypeName) -> Any:
    """One type with its columns."""
    check_name(caller, name)
    return JsonAnswer(_shown(await _registry(state).type(name)))


@router.patch("/types/{name}", response_model=dict[str, Any])
async def change(state: TheState, caller: Operator, name: TypeName, body: Change) -> Any:
    """Change the time to live or the schedule, pause or resume."""
    check_name(caller, name)
    await _registry(state).type(name)  # 404 before anything is changed
    if {"ttl", "strategy", "cron", "zone"} & body.model_fields_set:
        await _types(state).change(name, ttl=body.ttl, strategy=body.strategy, cron=body.cron, zone=body.zone)
    if body.paused is not None:
        await _types(state).pause(name, paused=body.paused)
    return JsonAnswer(_shown(await _registry(state).type(name)))


@router.get("/types/{name}/universe", response_model=Page)
async def universe(state: TheState, caller: Viewer, name: TypeName, limit: Limit = 50, after: After = None) -> Any:
    """The keys that a scheduled type walks through, in its order."""
    check_name(caller, name)
    rows = await _registry(state).universe(name, after=cursor_place(after), limit=limit)
    return JsonAnswer(page(rows, limit, rows[-1]["key"] if rows else None))


@router.put("/types/{name}/universe", response_model=Walked)
async def change_universe(state: TheState, caller: Operator, name: TypeName, body: Universe) -> Any:
    """Add keys to the walk, and take keys out of it; what is so already stays."""
    check_name(caller, name)
    await _registry(state).type(name)  # 404 before anything is changed
    added = await _types(state).add_universe(name, body.add)
    removed = await _types(state).deactivate_universe(name, body.remove)
    return JsonAnswer({"added": added, "removed": removed})


@router.get("/types/{name}/ttl", response_model=Page)
async def ttls(state: TheState, caller: Viewer, name: TypeName, limit: Limit = 50, after: After = None) -> Any:
    """The keys of a type that have a time to live of their own, by key."""
    check_name(caller, name)
    await _registry(state).type(name)  # 404, not an empty list
    rows = await _registry(state).ttls(name, after=(name, cursor_place(after)), limit=limit)
    items = [{"key": row["key"], "ttl_seconds": row["ttl_seconds"]} for row in rows]
    return JsonAnswer(page(items, limit, rows[-1]["key"] if rows else None))


@router.get("/types/{name}/ttl/{key:path}", response_model=KeyTtl)
async def ttl(state: TheState, caller: Viewer, name: TypeName, key: TypeKey) -> Any:
    """How long one key stays fresh."""
    check_name(caller, name)
    if len(key.encode()) > 200 or "\x00" in key:
        raise not_found()
    return JsonAnswer(await _registry(state).ttl(name, key))


@router.put("/types/{name}/ttl/{key:path}", response_model=KeyTtl)
async def set_ttl(state: TheState, caller: Operator, name: TypeName, key: TypeKey, body: OwnTtl) -> Any:
    """Give one key a time to live of its own; it holds at once."""
    check_name(caller, name)
    if "\x00" in key:
        raise not_found()
    span = await _types(state).set_ttl(name, key, body.ttl)
    return JsonAnswer({"ttl_seconds": span, "own": True})


@router.delete("/types/{name}/ttl/{key:path}", status_code=204)
async def clear_ttl(state: TheState, caller: Operator, name: TypeName, key: TypeKey) -> Response:
    """Let the type's own hold again; also when the key had none."""
    check_name(caller, name)
    if "\x00" in key:
        raise not_found()
    await _types(state).clear_ttl(name, key)
    return Response(status_code=204)


@router.get("/upstreams", response_model=Page)
async def upstreams(state: TheState, caller: Operator, limit: Limit = 50, after: After = None) -> Any:  # noqa: ARG001 - the scope is the point
    """Upstreams, by name, each with what its credentials have used and wait for."""
    begin = cursor_place(after)
    rows = [row for row in await _types(state).upstreams() if row["name"] > begin][:limit]
    limiters = await QueueAdmin(state.pools.operate, state.nudger).limiters()
    items = [{**row, "limits": [one for one in limiters if one["name"] == row["name"]]} for row in rows]
    return JsonAnswer(page(items, limit, rows[-1]["name"] if rows else None))


def check_name(caller: Caller, name: str) -> None:
    """One answer for what is not there and for what the caller may not see."""
    if not caller.may_read(name) or not name.isascii() or not name.isidentifier():
        raise not_found()


def cursor_place(after: str | None) -> str:
    """Where a list goes on."""
    try:
        return place(after)
    except ValueError:
        raise Problem(
            400,
            "This is not a cursor of ours.",
            word="invalid",
            field="query.after",
            allowed="`next` of the page before",
        ) from None


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    # Why it is parked are an upstream's own words: those are for `livewell types list`.
    paused = row["paused"] if "paused" in row else row["paused_at"] is not None
    known = {**row, "paused": paused, "parked": row["parked_reason"] is not None}
    return {name: known[name] for name in _SHOWN if name in known}


def _registry(state: ServerProcess) -> TypeAdmin:
    """To read, for viewers."""
    return TypeAdmin(state.pools.hub)


def _types(state: ServerProcess) -> TypeAdmin:
    """To change, for operators."""
    return TypeAdmin(state.pools.operate)
