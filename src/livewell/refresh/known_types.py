"""The registry as a worker knows it: definitions by name, read again when a job was made for another version, and looked over every few seconds.

A type that is applied while workers run is thus used by the first job that was made for it, without a restart.
"""

from __future__ import annotations

from dataclasses import dataclass

from livewell.db import Database
from livewell.errors import InvalidDefinition
from livewell.refresh.definition import TypeDefinition, UpstreamDefinition
from livewell.refresh.document import read_row

_READ = """
SELECT d.name, d.version, d.definition::text, u.name, u.version, u.definition::text
FROM livewell.data_type d JOIN livewell.upstream u ON u.name = d.upstream WHERE d.name = %s
"""
_VERSIONS = "SELECT d.name, d.version, u.version FROM livewell.data_type d JOIN livewell.upstream u ON u.name = d.upstream WHERE d.name = ANY (%s)"
_KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class KnownType:
    """A type with its upstream, each in one version."""

    definition: TypeDefinition
    upstream: UpstreamDefinition
    version: int
    upstream_version: int


class KnownTypes:
    """Definitions by name; one query per type and version."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, KnownType] = {}

    async def get(self, name: str, version: int) -> KnownType | None:
        """The type as it is; read again unless it is known in this version. None: there is no such type any more."""
        known = self._known.get(name)
        if known is not None and known.version == version:
            return known
        return await self._read(name)

    async def look_over(self) -> None:
        """Forget what has changed since: the next job reads it again."""
        rows = await self._database.call(_VERSIONS, (list(self._known),))
        versions = {name: (version, upstream_version) for name, version, upstream_version in rows}
        self._known = {
            name: known
            for name, known in self._known.items()
            if versions.get(name) == (known.version, known.upstream_version)
        }

    async def _read(self, name: str) -> KnownType | None:
        rows = await self._database.call(_READ, (name,))
        if not rows:
            self._known.pop(name, None)
            return None
        _, version, type_text, upstream_name, upstream_version, upstream_text = rows[0]
        definition = read_row(type_text, f"type {name}")
        upstream = read_row(upstream_text, f"upstream {upstream_name}")
        if not isinstance(definition, TypeDefinition) or not isinstance(upstream, UpstreamDefinition):
            raise InvalidDefinition(f"type {name}: its row does not hold a type, or its upstream's row no upstream")
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        known = self._known[name] = KnownType(definition, upstream, version, upstream_version)
        return known
