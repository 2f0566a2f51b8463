"""Put a definition into the registry.

Its sample is checked; then row, table, limiter and queue are written in one transaction.

    file ──read──▶ definition ──sample──▶ apply_type() ──additive──▶ created | changed | unchanged
                                              └──anything else──▶ ChangeRefused, with the SQL a person would have to run

A lock that is not there within 100 ms is given up and tried again, so nobody queues behind us.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from livewell.db import Database, Row, acts
from livewell.errors import ChangeRefused, ConfigurationError, DatabaseError, InvalidDefinition, LivewellError
from livewell.loops import jittered
from livewell.refresh.definition import document as documents
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.registry import exchange_calendar as calendars
from livewell.refresh.registry.registry import read_upstream_row
from livewell.refresh.registry.sample_check import check_sample
from livewell.refresh.validate.answer import Transform

_TRIES = 50
_PAUSE_SECONDS = 0.2
_LOCK_NOT_AVAILABLE = "55P03"
_NOT_ALLOWED = "42501"
_PAGE = 500

# A definition that was applied before is no act: `up` applies all of them at each start.
_APPLIED = """
WITH was AS MATERIALIZED (SELECT o.version FROM livewell.{table} o WHERE o.name = %s),
    done AS MATERIALIZED (SELECT a.* FROM (SELECT) AS x CROSS JOIN {call} AS a)
SELECT d.*, CASE WHEN d.outcome <> 'unchanged' THEN {recorded}::text END FROM done d
"""
_RECORDED = acts.recorded(
    "d.outcome",
    before="(SELECT jsonb_build_object('version', w.version) FROM was w)",
    after="coalesce(%s::jsonb, jsonb_build_object('version', d.version))",
)
_APPLY_UPSTREAM = _APPLIED.format(
    table="upstream", call="livewell.apply_upstream(%s::jsonb, %s::jsonb, %s)", recorded=_RECORDED
)
_APPLY_TYPE = _APPLIED.format(table="data_type", call="livewell.apply_type(%s::jsonb)", recorded=_RECORDED)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a file; statements are those that were run."""

    name: str
    outcome: str  # created, changed, unchanged
    version: int
    statements: tuple[str, ...] = ()


async def apply(
    database: Database,
    definition: UpstreamDefinition | TypeDefinition,
    where: str,
    *,
    transforms: Mapping[str, Transform] | None = None,
) -> Applied:
    """Apply one definition; where is its file, for errors."""
    if isinstance(definition, UpstreamDefinition):
        return await _apply_upstream(database, definition)
    if definition.answer.transform is None or definition.answer.transform in (transforms or {}):
        check_sample(definition, where, transforms=transforms)
    await _check_upstream(database, definition, where)
    await _load_calendar(database, definition, where)
    applied = await _apply_type(database, definition, where)
    if applied.outcome == "changed":
        await redue(database, definition.name)
    return applied


async def _apply_upstream(database: Database, definition: UpstreamDefinition) -> Applied:
    row = {
        "name": definition.name,
        "base_url": definition.base_url,
        "credential_in": definition.credential_in,
        "vocabulary": definition.vocabulary,
        "counts": definition.counts,
        "definition": definition.document,
    }
    limits = json.dumps(dict(definition.limits.columns))
    act = acts.line("upstreams.apply", definition.name)
    [(outcome, version, _)] = await _patiently(
        database, _APPLY_UPSTREAM, (definition.name, documents.write(row), limits, list(definition.credentials), *act)
    )
    return Applied(definition.name, outcome, version)


async def _apply_type(database: Database, definition: TypeDefinition, where: str) -> Applied:
    row = type_row(definition)
    act = acts.line("types.apply", definition.name)
    [(outcome, version, reasons, statements, _)] = await _patiently(
        database, _APPLY_TYPE, (definition.name, documents.write(row), *act)
    )
    if outcome == "refused":
        told = "; ".join(reasons)
        raise ChangeRefused(
            f"{where}: more than an addition: {told}. Nothing was changed. A person would have to run, as the owner, and then apply again:\n"
            + "\n".join(statements),
            statements=tuple(statements),
        )
    return Applied(definition.name, outcome, version, tuple(statements))


def type_row(definition: TypeDefinition) -> dict[str, Any]:
    """The definition as columns of livewell.data_type."""
    answer = definition.answer
    return {
        "name": definition.name,
        "upstream": definition.upstream,
        "ttl": f"{definition.ttl_seconds:.6f} seconds",
        "negative_ttl": f"{definition.negative_ttl_seconds:.6f} seconds",
        "strategy": definition.strategy,
        "cron": definition.cron,
        "zone": definition.zone,
        "rule": answer.rule,
        "calendar": answer.calendar,
        "max_source_age": None
        if answer.max_source_age_seconds is None
        else f"{answer.max_source_age_seconds:.6f} seconds",
        "has_source_time": answer.source_time is not None,
        "rows_kind": answer.kind,
        "pool": definition.pool,
        "keys_max": definition.keys_max,
        "key_pattern": definition.fetch.pattern.text,
        "size_estimate": definition.size_estimate,
        "prefetch": definition.prefetch,
        "definition": definition.document,
        "columns": definition.registered_columns(),
    }


async def _check_upstream(database: Database, definition: TypeDefinition, where: str) -> None:
    rows = await database.call(
        "SELECT u.name, u.version, u.definition::text FROM livewell.upstream u WHERE u.name = %s",
        (definition.upstream,),
    )
    if not rows:
        raise InvalidDefinition(
            f'{where}: upstream "{definition.upstream}" is not in the registry; apply its file first'
        )
    upstream = read_upstream_row(rows[0]).definition
    place, _, name = (upstream.credential_in or "").partition(":")
    calls = [definition.fetch.call, *([definition.fetch.batch.call] if definition.fetch.batch else [])]
    if place == "query" and any(name == parameter for call in calls for parameter, _ in call.query):
        raise InvalidDefinition(f'{where}: query: "{name}" is where upstream {upstream.name} has its credential')


async def _load_calendar(database: Database, definition: TypeDefinition, where: str) -> None:
    """The sessions of the exchange that the type names.

    Without them the rule `session` would be plain age.
    """
    if definition.answer.calendar is None:
        return
    try:
        calendar = calendars.read(definition.answer.calendar)
    except ConfigurationError as error:
        raise InvalidDefinition(f"{where}: [answer]: {error}") from None
    await _patiently(database, calendars.LOAD, calendar.parameters)


async def redue(database: Database, name: str) -> None:
    """A new time to live holds for every key at once; page by page, each its own transaction."""
    after: str | None = ""
    while after is not None:
        [(after,)] = await database.call("SELECT livewell.redue_type(%s, %s, %s)", (name, after, _PAGE))


async def _patiently(database: Database, query: str, params: tuple[Any, ...]) -> list[Row]:
    for left in reversed(range(_TRIES)):
        try:
            return await database.call(query, params)
        except DatabaseError as error:
            if error.sqlstate == _NOT_ALLOWED:
                raise LivewellError(
                    "only the owner may change the registry: connect as a member of livewell_owner, or as "
                    "whoever ran `livewell migrate`"
                ) from error
            if error.sqlstate != _LOCK_NOT_AVAILABLE or left == 0:
                raise
        await _pause()
    raise AssertionError("unreachable")


async def _pause() -> None:
    await asyncio.sleep(jittered(_PAUSE_SECONDS, 0.25))
