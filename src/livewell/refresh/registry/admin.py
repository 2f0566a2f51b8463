"""Look at types, and change what may be changed without a file.

Times to live of single keys (R2), the universe (R19), and whether a type is refreshed at all. The
command line and the API stand on this.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from livewell.db import Database, acts
from livewell.duration import Duration, seconds
from livewell.errors import InvalidOption, UnknownType
from livewell.refresh.registry.apply import redue
from livewell.refresh.registry.drift import Drift, find_drift
from livewell.schedule.cron import CronError, check_cron

_KEYS_PER_CALL = 1000
_SPAN_SECONDS_MAX = 400 * 86400

_LIST = """
SELECT t.name, t.upstream, t.strategy, t.cron, t.zone, extract(epoch FROM t.ttl)::float8 AS ttl_seconds, t.rule::text AS rule, t.rows_kind, t.version, t.applied_at,
    t.paused_at IS NOT NULL AS paused, t.parked_reason, t.size_estimate, t.pool
FROM livewell.data_type t ORDER BY t.name
"""
_SHOW = """
SELECT t.name, t.definition #>> '{type,title}' AS title, t.upstream, extract(epoch FROM t.ttl)::float8 AS ttl_seconds, extract(epoch FROM t.negative_ttl)::float8 AS negative_ttl_seconds,
    t.strategy, t.cron, t.zone,
    (SELECT s.due_at FROM livewell.schedule s WHERE s.name = 'walk.' || t.name AND s.open_ended) AS cron_due_at,
    t.rule::text AS rule, t.calendar, extract(epoch FROM t.max_source_age)::float8 AS max_source_age_seconds, t.rows_kind, t.key_pattern, t.keys_max,
    t.size_estimate, t.pool, t.prefetch, t.paused_at, t.parked_reason, t.version, t.applied_at, t.columns
FROM livewell.registered_type(%s) AS t
"""
_OVERRIDES = """
SELECT l.data_type, l.key, extract(epoch FROM l.ttl)::float8 AS ttl_seconds, extract(epoch FROM l.type_ttl)::float8 AS type_ttl_seconds
FROM livewell.list_ttls(%s, %s, %s, %s) AS l
"""

_OVERRIDE = """
SELECT coalesce(extract(epoch FROM l.ttl_override), extract(epoch FROM t.ttl))::float8 AS ttl_seconds, l.ttl_override IS NOT NULL AS own
FROM livewell.data_type t LEFT JOIN livewell.ledger l ON l.data_type = t.name AND l.key = %s WHERE t.name = %s
"""
_UPSTREAMS = (
    "SELECT u.name, u.base_url, u.paused_at IS NOT NULL AS paused, u.version, u.applied_at FROM "
    "livewell.upstream u ORDER BY u.name LIMIT 1000"
)

# Before an act, for the audit. A row that the caller may change is locked, so that nobody is between.
_TYPE_PAUSED = """
SELECT jsonb_strip_nulls(jsonb_build_object('paused', t.paused_at IS NOT NULL, 'parked', t.parked_reason))
FROM livewell.data_type t WHERE t.name = %s FOR NO KEY UPDATE
"""
_UPSTREAM_PAUSED = """
SELECT jsonb_build_object('paused', u.paused_at IS NOT NULL) FROM livewell.upstream u WHERE u.name = %s FOR NO KEY UPDATE
"""
_TYPE_RULE = """
SELECT jsonb_strip_nulls(jsonb_build_object('ttl_seconds', extract(epoch FROM t.ttl), 'strategy', t.strategy, 'cron', t.cron, 'zone', t.zone))
FROM livewell.data_type t WHERE t.name = %s FOR NO KEY UPDATE
"""
_OWN_RULE = """
SELECT jsonb_build_object('ttl_seconds', extract(epoch FROM coalesce(l.ttl_override, t.ttl)), 'own', l.ttl_override IS NOT NULL)
FROM livewell.data_type t LEFT JOIN livewell.ledger l ON l.data_type = t.name AND l.key = %s WHERE t.name = %s
"""
_PAUSE_TYPE = acts.audited("livewell.pause_type(%s, %s)", before=_TYPE_PAUSED)
_PAUSE_UPSTREAM = acts.audited("livewell.pause_upstream(%s, %s)", before=_UPSTREAM_PAUSED)
_CHANGE = acts.audited("livewell.change_type(%s, %s, %s, %s, %s)", before=_TYPE_RULE)
_GIVE_OWN = acts.audited("livewell.set_ttl(%s, %s, %s)", before=_OWN_RULE)
_TAKE_OWN = acts.audited("livewell.clear_ttl(%s, %s)", before=_OWN_RULE)
_ADD = acts.audited("livewell.add_universe(%s, %s)", count="d.answer")
_DEACTIVATE = acts.audited("livewell.deactivate_universe(%s, %s)", count="d.answer")


class TypeAdmin:
    """The registry of one database.

    Files are applied by livewell.refresh.registry.apply, as the owner.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def types(self) -> list[dict[str, Any]]:
        """Every type, by name."""
        return await self._database.call_dicts(_LIST)

    async def type(self, name: str) -> dict[str, Any]:
        """One type with its columns."""
        return (await self._database.call_dicts(_SHOW, (name,)))[0]

    async def upstreams(self) -> list[dict[str, Any]]:
        """Every upstream, by name."""
        return await self._database.call_dicts(_UPSTREAMS)

    async def drift(self) -> list[Drift]:
        """Where tables differ from their definitions."""
        return await find_drift(self._database.call)

    async def pause(self, name: str, *, paused: bool, upstream: bool = False) -> bool:
        """Stop or start refreshing a type, or everything from an upstream; False if it was so already.

        What is stored is read as before. To start a parked type lets go of why it was parked.
        """
        action = f"{'upstreams' if upstream else 'types'}.{'pause' if paused else 'resume'}"
        act = acts.line(action, name, after={"paused": paused})
        query = _PAUSE_UPSTREAM if upstream else _PAUSE_TYPE
        [(is_known, _, was)] = await self._database.call(query, (name, name, paused, *act))
        if not is_known:
            what = "upstream" if upstream else "type"
            raise UnknownType(f'{what} "{name[:60]}" is not in the registry; see: livewell types list')
        return bool(was["paused"] != paused or (not paused and "parked" in was))

    async def change(
        self,
        name: str,
        *,
        ttl: Duration | None = None,
        strategy: str | None = None,
        cron: str | None = None,
        zone: str | None = None,
    ) -> None:
        """Another time to live, or another schedule, until its file is applied again.

        It holds for every key at once.
        """
        span = None if ttl is None else _span(ttl)
        if strategy == "scheduled":
            _check_schedule(cron, zone)
        elif cron is not None or zone is not None:
            raise InvalidOption("cron and zone go with the strategy scheduled")
        wish = {"ttl_seconds": span, "strategy": strategy, "cron": cron, "zone": zone}
        act = acts.line("types.change", name, after={one: value for one, value in wish.items() if value is not None})
        given = (name, None if span is None else timedelta(seconds=span), strategy, cron, zone)
        [(found, *_)] = await self._database.call(_CHANGE, (name, *given, *act))
        if not found:
            raise UnknownType(f'type "{name[:60]}" is not in the registry; see: livewell types list')
        await redue(self._database, name)

    async def ttl(self, name: str, key: str) -> dict[str, Any]:
        """How long one key stays fresh, and whether that is its own."""
        rows = await self._database.call_dicts(_OVERRIDE, (key, name))
        if not rows:
            raise UnknownType(f'type "{name[:60]}" is not in the registry; see: livewell types list')
        return rows[0]

    async def set_ttl(self, name: str, key: str, ttl: Duration) -> float:
        """Let one key stay fresh for so long, from now on; answers the seconds."""
        span = _span(ttl)
        act = acts.line("types.set_ttl", f"{name} {key}", after={"ttl_seconds": span, "own": True})
        await self._database.call(_GIVE_OWN, (key, name, name, key, timedelta(seconds=span), *act))
        return span

    async def clear_ttl(self, name: str, key: str) -> bool:
        """Let the time to live of the type hold again; whether the key had its own."""
        act = acts.line("types.clear_ttl", f"{name} {key}", after={"own": False})
        [(had, *_)] = await self._database.call(_TAKE_OWN, (key, name, name, key, *act))
        return bool(had)

    async def ttls(
        self, name: str | None = None, *, after: tuple[str, str] = ("", ""), limit: int = 100
    ) -> list[dict[str, Any]]:
        """The keys that have their own, by type and key, after the given type and key."""
        return await self._database.call_dicts(_OVERRIDES, (name, *after, limit))

    async def add_universe(self, name: str, keys: Sequence[str]) -> int:
        """Put keys into the walk of a scheduled type; how many were not in it.

        In pages: a hundred thousand keys are not one statement.
        """
        return await self._paged(_ADD, "types.add_universe", name, keys)

    async def deactivate_universe(self, name: str, keys: Sequence[str]) -> int:
        """Leave keys out of the walk; how many were in it."""
        return await self._paged(_DEACTIVATE, "types.deactivate_universe", name, keys)

    async def universe(
        self, name: str, *, after: str = "", limit: int = 100, inactive: bool = False
    ) -> list[dict[str, Any]]:
        """The keys of the walk, in its order."""
        return await self._database.call_dicts(
            "SELECT * FROM livewell.list_universe(%s, %s, %s, %s)", (name, after, limit, inactive)
        )

    async def _paged(self, query: str, action: str, name: str, keys: Sequence[str]) -> int:
        changed = 0
        for start in range(0, len(keys), _KEYS_PER_CALL):
            some = list(keys[start : start + _KEYS_PER_CALL])
            act = acts.line(action, name, keys=len(some), first=some[0], last=some[-1])
            [(n, _)] = await self._database.call(query, (name, some, *act))
            changed += n
        return changed


def _span(ttl: Duration) -> float:
    span = seconds(ttl, "ttl")
    if not 0 < span <= _SPAN_SECONDS_MAX:  # a timedelta could not even hold some of what is refused
        raise InvalidOption(f"ttl {ttl!r}: more than 0 and at most 400 days is allowed")
    return span


def _check_schedule(cron: str | None, zone: str | None) -> None:
    if cron is None or zone is None:
        raise InvalidOption("the strategy scheduled needs cron and zone")
    try:
        check_cron(cron, zone)
    except CronError:
        raise InvalidOption(
            f"cron {cron[:40]!r}, zone {zone[:40]!r}: five fields such as 0 2 * * *, and a zone such as UTC"
        ) from None
