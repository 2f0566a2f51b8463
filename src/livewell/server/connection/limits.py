"""Which connections there are, from where, and until when each may be doing what it does.

    arrives ──its address has its share──────────────▶ cut
       ├─────all are taken, and none can be spared───▶ cut
       └─────▶ counted ──deadline of its phase passes──▶ cut
                   └──────closed──▶ forgotten

When all places are taken, a newcomer gets the place of another connection, in this order:

    1  one that no caller is known on, and that waits for its client (silent, half a head, half a body),
       of the address that has the most of them
    2  one that is idle between two requests, of an anonymous client (a public key)
    3  the same, of a user
       2 and 3: of the address that has the most idle ones

An address never takes a place from an address that has no more connections of that kind than
itself. It takes 2 or 3 only for its first unknown connection. Only connections of these kinds are
compared, never all: a hundred people behind one address, each with a stream, are no reason to take
the connection on which they read. Nothing that runs is ended.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from livewell.server.connection.network import Proxies, network
from livewell.server.connection.refusals import Kind, Refusals
from livewell.settings import Settings

_SWEEP_SECONDS = 0.5
_LOOK_SECONDS = 0.02  # between two looks at all connections for one to spare
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


class Standing(IntEnum):
    """What kind of caller a connection is known to have; the lowest gives its place up first."""

    UNKNOWN = 0
    STRANGER = 1  # a public key
    USER = 2  # a key or token of somebody, or a trusted proxy


class Connection(Protocol):
    """One connection, as far as it is known here."""

    deadline: float | None
    standing: Standing

    @property
    def idle(self) -> bool:
        """No request of it has begun, or the last one has ended."""

    @property
    def waits_for_client(self) -> bool:
        """Nothing can be done on it before its client sends more: idle, or half a body is there."""

    def overdue(self) -> Kind | None:
        """Its deadline has passed: what to say of it, or None if it may stay after all."""

    def cut(self) -> None:
        """End it at once."""


class Connections:
    """All connections of one server."""

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
        self._unknown: dict[str, set[Connection]] = {}  # of each network, those on which no caller is known
        self._where: dict[Connection, str] = {}
        self._looked_at = float("-inf")

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
        if len(self._where) >= self.bounds.connections and not self._make_room(where):
            self.refusals.count("all_connections", where)
            if not here:
                del self._networks[where]
            return False
        here.add(connection)
        self._where[connection] = where
        if self.is_proxy(address):
            connection.standing = Standing.USER
        else:
            self._unknown.setdefault(where, set()).add(connection)
        return True

    def know(self, connection: Connection, standing: Standing) -> None:
        """A caller is known on it.

        It stays known for as long as it lives: the share of its address bounds it.
        """
        where = self._where.get(connection)
        if where is not None and standing > connection.standing:
            connection.standing = standing
            _discard(self._unknown, where, connection)

    def leave(self, connection: Connection) -> None:
        """It has ended; harmless if it was never counted."""
        where = self._where.pop(connection, None)
        if where is not None:
            _discard(self._networks, where, connection)
            _discard(self._unknown, where, connection)

    def where(self, connection: Connection) -> str:
        """The network that it was counted for."""
        return self._where.get(connection, "unknown")

    async def watch(self) -> None:
        """Cut connections that are past their deadline, for ever."""
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

    def _make_room(self, where: str) -> bool:
        """Cut one that can be spared for a newcomer of this network, if there is one."""
        spare = self._spare_unknown(where) or self._spare_known(where)
        if spare is None:
            return False
        self.refusals.count("all_connections", self.where(spare))
        self.leave(spare)
        spare.cut()
        return True

    def _spare_unknown(self, where: str) -> Connection | None:
        fullest = max(self._unknown.values(), key=len, default=set[Connection]())
        if len(fullest) <= len(self._unknown.get(where, ())) + 1:
            return None
        return next((one for one in fullest if one.waits_for_client), None)

    def _spare_known(self, where: str) -> Connection | None:
        """Not for an address of which others wait unknown.

        Looks at all connections, so not for every newcomer.
        """
        now = self.clock()
        if where in self._unknown or now - self._looked_at < _LOOK_SECONDS:
            return None
        self._looked_at = now
        for standing in (Standing.STRANGER, Standing.USER):
            idle: dict[str, list[Connection]] = {}
            for one, network_of_one in self._where.items():
                if one.standing is standing and one.idle:
                    idle.setdefault(network_of_one, []).append(one)
            most = max(idle.values(), key=len, default=[])
            if len(most) > len(idle.get(where, ())) + 1:
                return most[0]
        return None


def _discard(networks: dict[str, set[Connection]], where: str, connection: Connection) -> None:
    here = networks.get(where)
    if here is not None:
        here.discard(connection)
        if not here:
            del networks[where]
