"""The rules between settings, and wrong settings in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic.fields import FieldInfo

from livewell.settings.sources import Given
from livewell.settings.words import allowed, show_given, text

if TYPE_CHECKING:
    from livewell.settings.fields import Settings


@dataclass(frozen=True, slots=True)
class Conflict:
    """Settings that are right alone and wrong together."""

    names: tuple[str, ...]
    text: str


_HEARTBEAT_RULE = (
    "lease_seconds must be at least 6 × heartbeat_seconds: recovery trusts a worker that renewed within a third of "
    "the lease, so two heartbeats must fit into that third"
)
_CALL_RULE = (
    "lease_seconds, from 30 on, must be more than call_timeout_seconds + 10: a renewal that ran into its deadline "
    "must fit in again before the lease is over"
)
_SERVER_RULE = "api_url, operate_url and hub_url go together, and with database_url: each is a login of its own"
_LISTEN_RULE = "listen_url needs database_url: the embedded server has its own address"

RULES = (_HEARTBEAT_RULE, _CALL_RULE, _SERVER_RULE, _LISTEN_RULE)


def conflicts(settings: Settings) -> Iterator[Conflict]:
    """What does not go together."""
    lease, heartbeat, call = settings.lease_seconds, settings.heartbeat_seconds, settings.call_timeout_seconds
    if lease < 6 * heartbeat - 1e-9:  # 6 × 0.1 is a little more than 0.6
        yield Conflict(("lease_seconds", "heartbeat_seconds"), f"{_HEARTBEAT_RULE} (here {text(6 * heartbeat)})")
    if lease >= 30 and lease <= call + 10:
        yield Conflict(("lease_seconds", "call_timeout_seconds"), f"{_CALL_RULE} (here {text(call + 10)})")
    servers = ("api_url", "operate_url", "hub_url")
    if any(getattr(settings, name) for name in servers) and not all(
        getattr(settings, name) for name in (*servers, "database_url")
    ):
        yield Conflict((*servers, "database_url"), _SERVER_RULE)
    if settings.listen_url and not settings.database_url:
        yield Conflict(("listen_url", "database_url"), _LISTEN_RULE)


def value_problem(name: str, item: Given, info: FieldInfo) -> str:
    """One value that is wrong alone, in words."""
    return f"{item.label} is {show_given(name, item.value)}; allowed is {allowed(info)}"


def conflict_problem(conflict: Conflict, given: Mapping[str, Given], fields: Mapping[str, FieldInfo]) -> str:
    """Values that are wrong together, in words."""
    parts = [
        f"{given[name].label} is {show_given(name, given[name].value)}"
        if name in given
        else f"{name} is {text(fields[name].default)} (default)"
        for name in conflict.names
    ]
    return f"{' and '.join(parts)}: {conflict.text}"
