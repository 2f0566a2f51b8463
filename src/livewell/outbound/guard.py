"""Look a name up once, check every address, connect to nothing else.

    name ──resolve──▶ addresses ──all checked──▶ socket opened for exactly one of them (checked once more, at the socket)
                          └──one is not allowed──▶ AddressRefused: nobody was called

aiohttp asks us for addresses (Resolver) and for the socket to each of them (open_socket), so there
is no second look-up that could answer differently. A private address among public ones refuses them
all: no honest name has both. Checked addresses are kept for ten seconds; there are never more of
them than hosts on the list.
"""

import asyncio
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from livewell.outbound.address import place

__all__ = ["AddressRefused", "Guard", "Resolve", "SystemResolve"]

Resolve = Callable[[str], Awaitable[Sequence[str]]]

KEPT_SECONDS = 10.0
ADDRESSES_MAX = 64
ADDRESSES_TRIED_MAX = 8
_THREADS = 4  # getaddrinfo cannot be ended: a dead name server holds these, not the threads everybody else uses


class AddressRefused(OSError):
    """A name led to an address that may not be called."""


class SystemResolve:
    """The machine's own resolver, in threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="livewell-dns")

    async def __call__(self, host: str) -> Sequence[str]:
        """Every address of a name, in the resolver's order."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def close(self) -> None:
        """Let the threads go; one that still waits for a name server ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> list[Any]:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)


class Guard(AbstractResolver):
    """Finds and checks addresses for one kind of host: public hosts, or hosts named private."""

    def __init__(self, resolve: Resolve, *, private: bool) -> None:
        self._resolve = resolve
        self._allowed = frozenset({"public", "private"} if private else {"public"})
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._kept: dict[str, tuple[float, list[str]]] = {}

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - of aiohttp; we take what there is
    ) -> list[ResolveResult]:
        """Give the checked addresses of a name to aiohttp.

        Raises AddressRefused, or OSError where there are none.
        """
        async with self._locks[host]:  # fifty calls to one host ask once
            until, addresses = self._kept.get(host, (0.0, []))
            if time.monotonic() >= until:
                addresses = self._checked(host, await self._resolve(host))
                self._kept[host] = time.monotonic() + KEPT_SECONDS, addresses
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses[:ADDRESSES_TRIED_MAX]
        ]

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Open the socket aiohttp is about to connect; the last look at where it goes."""
        family, kind, protocol, _, destination = info
        self._check(str(destination[0]))
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        """Nothing is held."""

    def _checked(self, host: str, addresses: Sequence[str]) -> list[str]:
        if not addresses:
            raise OSError(f"{host} has no address")
        if len(addresses) > ADDRESSES_MAX:
            raise AddressRefused(f"{host} has more than {ADDRESSES_MAX} addresses")
        for address in addresses:
            self._check(address)
        return list(addresses)

    def _check(self, address: str) -> None:
        where = place(address)
        if where not in self._allowed:
            raise AddressRefused(f"address {address[:64]} is {where}")
