"""Who is connected, from where, and until when each may be doing what it does.

    arrives ──its address has its share──────────────▶ cut
       ├─────all are taken, and none can be spared───▶ cut
       └─────▶ counted ──deadline of its phase passes──▶ cut
                   └──────closed──▶ forgotten

When all are taken, a newcomer gets the place of a connection that does nothing, of the address that has the most: who merely sits there keeps nobody out, and nothing that runs is ended for it.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from livewell.server.connection.network import Proxies, network
from livewell.server.connection.refusals import Kind, Refusals
from livewell.settings import Settings

_SWEEP_SECONDS = 0.5
_SPARE_SECONDS = 0.02  # between two looks for a connection to spare: each reads the counts of all addresses
_DESCRIPTORS_WANTED = 65_536
_DESCRIPTORS_ASIDE = 64  # of files, logs, the listening socket and what libraries hold


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may cost before it is known who asks."""

    connections: int
    address_connections: int
    head_bytes: int = 16_384
    headers: int = 100
    head_seconds: float = 10.0
    answer_seconds: float = 30.0
    linger_seconds: float = 2.0  # for a client that still sends after it was refused: it shall read why
    linger_bytes: int = 1_048_576
    rest_seconds: float = 1.0  # a connection is not read for so long after its client was told to go away

    @classmethod
    def from_settings(cls, settings: Settings) -> Bounds:
        """As configured, and below what this process may open."""
        pools = 4 * settings.pool_size_max  # of the server's three roles, the workers of `up`, and their listeners
        room = max(8, descriptors() - pools - _DESCRIPTORS_ASIDE)
        most = min(settings.connections_max, room)
        return cls(
            connections=most,
            address_connections=min(settings.address_connections_max, max(4, most // 4)),
            head_seconds=settings.head_seconds,
            answer_seconds=settings.answer_seconds,
        )


def descriptors() -> int:
    """How many files this process may open, after it has asked for as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return _DESCRIPTORS_WANTED if soft == resource.RLIM_INFINITY else soft


class Connection(Protocol):
    """What is known of one here."""

    deadline: float | None

    @property
    def idle(self) -> bool:
        """No request of it has begun, or the last one has ended."""

    def overdue(self) -> Kind | None:
        """Its deadline has passed: what to say of it, or None if it may stay after all."""

    def cut(self) -> None:
        """End it at once."""


class Connections:
    """Of one server."""

    def __init__(
        self,
        bounds: Bounds,
        refusals: Refusals,
        *,
        proxies: Proxies | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.bounds = bounds
        self.refusals = refusals
        self.clock = clock
        self._proxies = proxies or Proxies(())
        self._networks: dict[str, set[Connection]] = {}
        self._where: dict[Connection, str] = {}
        self._spared_at = float("-inf")

    def __len__(self) -> int:
        return len(self._where)

    def is_proxy(self, address: str) -> bool:
        """Whether many people's requests come from there."""
        return address in self._proxies

    def admit(self, connection: Connection, address: str) -> bool:
        """Count it, unless its address has its share or all are taken."""
        where = network(address)
        here = self._networks.setdefault(where, set())
        if len(here) >= self.bounds.address_connections and not self.is_proxy(address):
            self.refusals.count("address_connections", where)
            return False
        if len(self._where) >= self.bounds.connections and not self._make_room(than=len(here)):
            self.refusals.count("all_connections", where)
            if not here:
                del self._networks[where]
            return False
        here.add(connection)
        self._where[connection] = where
        return True

    def leave(self, connection: Connection) -> None:
        """It has ended; harmless if it was never counted."""
        where = self._where.pop(connection, None)
        if where is not None:
            here = self._networks[where]
            here.discard(connection)
            if not here:
                del self._networks[where]

    def where(self, connection: Connection) -> str:
        """The network that it was counted for."""
        return self._where.get(connection, "unknown")

    async def watch(self) -> None:
        """Cut whoever is past its deadline, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Once."""
        now = self.clock()
        for connection in [one for one in self._where if one.deadline is not None and one.deadline <= now]:
            kind = connection.overdue()
            if kind is not None:
                self.refusals.count(kind, self.where(connection))
                connection.cut()

    def _make_room(self, *, than: int) -> bool:
        """Cut one that does nothing, of the address that has the most; not for a newcomer whose own address would then have as many."""
        now = self.clock()
        if now - self._spared_at < _SPARE_SECONDS:
            return False
        self._spared_at = now
        fullest = max(self._networks.values(), key=len)
        spare = next((one for one in fullest if one.idle), None) if len(fullest) > than + 1 else None
        if spare is None:
            return False
        self.refusals.count("all_connections", self.where(spare))
        self.leave(spare)
        spare.cut()
        return True
