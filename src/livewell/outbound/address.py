"""What kind of place an IP address is: public, one of ours, or nowhere a call may go. Pure.

We have our own table and do not use ipaddress.is_global: that one has changed between patch
releases of Python, and a guard should not. An IPv4 address inside an IPv6 one (mapped, NAT64) is
judged as itself. 6to4, Teredo and IPv4-compatible addresses are retired ways to hide an IPv4
address and are refused. IPv6 is public only inside 2000::/3, the part that is handed out.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal

__all__ = ["Place", "place"]

Place = Literal["public", "private", "forbidden"]

_PRIVATE_4 = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_FORBIDDEN_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host: reaches loopback on Linux
            "169.254.0.0/16",  # link-local, with the clouds' metadata at .169.254
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, with broadcast
        ),
    )
)
_PRIVATE_6 = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))
_PUBLIC_6 = IPv6Network("2000::/3")
_FORBIDDEN_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "3fff::/20",
        ),
    )
)
_CARRIERS = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))  # IPv4 in the last 32 bits: mapped, NAT64
_METADATA_6 = IPv6Network("fd00:ec2::/32")  # where a cloud keeps its metadata inside the unique local range


@lru_cache(maxsize=1024)
def place(address: str) -> Place:
    """Judge an address as the resolver wrote it.

    What is no plain address (a name, a scope id) is forbidden.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return "forbidden"
    return _place_4(parsed) if isinstance(parsed, IPv4Address) else _place_6(parsed)


def _place_4(address: IPv4Address) -> Place:
    if any(address in network for network in _PRIVATE_4):
        return "private"
    return "forbidden" if any(address in network for network in _FORBIDDEN_4) else "public"


def _place_6(address: IPv6Address) -> Place:
    if address.scope_id is not None:
        return "forbidden"
    if any(address in network for network in _CARRIERS):
        return _place_4(IPv4Address(int(address) & 0xFFFF_FFFF))
    if any(address in network for network in _PRIVATE_6):
        return "forbidden" if address in _METADATA_6 else "private"
    if address not in _PUBLIC_6 or any(address in network for network in _FORBIDDEN_6):
        return "forbidden"
    return "public"
