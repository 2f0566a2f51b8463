"""The name of a host, in the one spelling by which lists and URLs are compared."""

import re
from ipaddress import ip_address

__all__ = ["host_name"]

_CHARS_MAX = 253
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def host_name(text: str) -> str:
    """One exact host, lower case, IPv6 in brackets.

    Raises ValueError for a port, a scheme, a * or a number like 0x7f.1.
    """
    name = text.strip().lower()
    if ":" in name:
        return f"[{ip_address(name.removeprefix('[').removesuffix(']'))}]"
    if len(name) > _CHARS_MAX or not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is not an exact host name")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        ip_address(name)  # what ends in a number is an address, written in full
    return name
