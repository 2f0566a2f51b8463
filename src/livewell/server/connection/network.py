"""Addresses as bounds count them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=4096)
def network(address: str) -> str:
    """An IPv4 address; of IPv6 the /64, which one customer has whole."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    mapped = getattr(found, "ipv4_mapped", None) or found
    return str(mapped) if mapped.version == 4 else str(ipaddress.ip_network((mapped, 64), strict=False))


class Proxies:
    """The trusted proxies: requests that come through them are those of many people."""

    def __init__(self, named: Sequence[str]) -> None:
        self._networks = [found for found in map(_network_of, named) if found is not None]

    def __contains__(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in one for one in self._networks)


def _network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None  # a name: uvicorn compares it with the peer's address, which never is one
