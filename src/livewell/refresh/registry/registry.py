"""The registry as a process knows it.

Definitions are kept by name and version, and read again when they have changed, without a restart.

    asked for a type ──known, looked at lately──▶ it
          └──else──▶ SELECT name, version ──the same──▶ it
                            └──another──▶ read that row, forget the old one

A job says for which version it was made: a newer one than we know makes us look at once. A row that
cannot be read does not hide the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from livewell.errors import InvalidDefinition, UnknownType
from livewell.refresh.definition.document import read_row
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.registry.look_alikes import has_twin

LOOK_SECONDS = 2.0

Call = Callable[[str, Sequence[Any]], Awaitable[list[tuple[Any, ...]]]]
D = TypeVar("D", TypeDefinition, UpstreamDefinition)


@dataclass(frozen=True, slots=True)
class Registered(Generic[D]):
    """A definition and the version it has in the registry."""

    definition: D
    version: int


class Registry:
    """Types and upstreams of one database. One per process; safe for many tasks of one loop."""

    def __init__(
        self, call: Call, *, look_seconds: float = LOOK_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._call = call
        self._look_seconds = look_seconds
        self._clock = clock
        self._looked_at = -float("inf")
        self._turn = asyncio.Lock()
        self._types: dict[str, Registered[TypeDefinition]] = {}
        self._upstreams: dict[str, Registered[UpstreamDefinition]] = {}
        self._unreadable: dict[tuple[str, str], tuple[int, str]] = {}  # (table, name) → version, why
        self._twins: dict[str, bool] = {}  # as far as they were asked for, until a type changes

    async def type(self, name: str, *, version: int | None = None) -> Registered[TypeDefinition]:
        """The type as it is now; version: what the caller has seen, so nothing older will do."""
        known = self._types.get(name)
        if known is None or (version is not None and version > known.version):
            self.forget_time()
        await self.look()
        found = self._types.get(name)
        if found is None:
            raise UnknownType(self._why("data_type", name) or f'type "{name}" is not in the registry')
        return found

    async def upstream(self, name: str) -> Registered[UpstreamDefinition]:
        """The upstream as it is now."""
        if name not in self._upstreams:
            self.forget_time()
        await self.look()
        found = self._upstreams.get(name)
        if found is None:
            raise UnknownType(self._why("upstream", name) or f'upstream "{name}" is not in the registry')
        return found

    def has_twin(self, name: str) -> bool:
        """True if answers of another type of its upstream could be taken for answers of this one."""
        known = self._types.get(name)
        if known is not None and name not in self._twins:
            self._twins[name] = has_twin(known.definition, [other.definition for other in self._types.values()])
        return self._twins.get(name, True)

    @property
    def types(self) -> Mapping[str, Registered[TypeDefinition]]:
        """What was there when we last looked."""
        return MappingProxyType(self._types)

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Rows that this release cannot read, and why: for whoever counts warnings."""
        return {name: why for (_, name), (_, why) in self._unreadable.items()}

    def forget_time(self) -> None:
        """Look again at the next question: somebody said that the registry has changed."""
        self._looked_at = -float("inf")

    async def look(self) -> None:
        """Read what has changed, if we have not looked for a while."""
        async with self._turn:
            if self._clock() - self._looked_at < self._look_seconds:
                return
            begun = self._clock()
            upstreams = await self._changed("upstream", self._upstreams)
            before = len(self._types)
            types = await self._changed("data_type", self._types)
            if types or len(self._types) != before:
                self._twins.clear()
            for row in upstreams:
                self._take("upstream", row, self._upstreams, read_upstream_row)
            for row in types:
                self._take("data_type", row, self._types, read_type_row)
            self._looked_at = begun

    async def _changed(self, table: str, known: dict[str, Registered[Any]]) -> list[tuple[Any, ...]]:
        """The rows that are new or of another version; those that are gone are forgotten."""
        versions: dict[str, int] = dict(await self._call(_VERSIONS[table], ()))
        for name in known.keys() - versions.keys():
            del known[name]
        for place in [place for place in self._unreadable if place[0] == table and place[1] not in versions]:
            del self._unreadable[place]
        wanted = [name for name, version in versions.items() if self._seen(table, name, known) != version]
        return await self._call(_ROWS[table], (wanted,)) if wanted else []

    def _seen(self, table: str, name: str, known: dict[str, Registered[Any]]) -> int | None:
        bad = self._unreadable.get((table, name))
        return bad[0] if bad else known[name].version if name in known else None

    def _take(
        self,
        table: str,
        row: tuple[Any, ...],
        known: dict[str, Registered[D]],
        read: Callable[[tuple[Any, ...]], Registered[D]],
    ) -> None:
        name, version, _ = row
        self._unreadable.pop((table, name), None)
        try:
            known[name] = read(row)
        except InvalidDefinition as error:
            known.pop(name, None)  # an old definition would be wrong about the table
            self._unreadable[table, name] = (version, str(error))

    def _why(self, table: str, name: str) -> str | None:
        bad = self._unreadable.get((table, name))
        return bad[1] if bad else None


_VERSIONS = {
    "upstream": "SELECT u.name, u.version FROM livewell.upstream u",
    "data_type": "SELECT t.name, t.version FROM livewell.data_type t",
}
_ROWS = {
    "upstream": "SELECT u.name, u.version, u.definition::text FROM livewell.upstream u WHERE u.name = ANY (%s)",
    "data_type": "SELECT t.name, t.version, t.definition::text FROM livewell.data_type t WHERE t.name = ANY (%s)",
}


def read_upstream_row(row: tuple[Any, ...]) -> Registered[UpstreamDefinition]:
    """(name, version, definition as text) of livewell.upstream."""
    name, version, text = row
    found = read_row(f'{{"upstream": {text}}}', f"upstream {name}")
    if not isinstance(found, UpstreamDefinition) or found.name != name:
        raise InvalidDefinition(f"upstream {name}: its definition is of something else")
    return Registered(found, version)


def read_type_row(row: tuple[Any, ...]) -> Registered[TypeDefinition]:
    """(name, version, definition as text) of livewell.data_type."""
    name, version, text = row
    found = read_row(text, f"type {name}")
    if not isinstance(found, TypeDefinition) or found.name != name:
        raise InvalidDefinition(f"type {name}: its definition is of something else")
    return Registered(found, version)
