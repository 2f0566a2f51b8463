"""How a call names identities: {"email": "ann@example.com"}, or pairs where a type comes twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from livewell.errors import InvalidOption

IDENTITIES_MAX = 20
Identities = Mapping[str, str | Sequence[str]] | Iterable[tuple[str, str]]


def pairs(identities: Identities) -> list[tuple[str, str]]:
    """Type and value of each; what Postgres can say about a value it says itself."""
    if isinstance(identities, Mapping):
        listed = [
            (kind, value)
            for kind, given in identities.items()
            for value in ([given] if isinstance(given, str) else given)
        ]
    else:
        listed = [(kind, value) for kind, value in identities]
    if not 1 <= len(listed) <= IDENTITIES_MAX:
        raise InvalidOption(f"{len(listed)} identities in one call: 1 to {IDENTITIES_MAX} are allowed")
    for kind, value in listed:
        if not isinstance(kind, str) or not isinstance(value, str) or "\x00" in kind + value:
            raise InvalidOption(f"identity of type {kind!r}: type and value are texts without NUL")
    return listed
