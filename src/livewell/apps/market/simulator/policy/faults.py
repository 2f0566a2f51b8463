"""Everything that can go wrong with an answer, by name, and the preset that lets all of it happen.

A fault belongs to a family; wherever a fault is named, a family may be named too, and its members
take turns. `true` faults leave the data right: what such an answer says may be stored (an added
field, an older but genuine answer).
"""

from collections.abc import Collection
from typing import NamedTuple

from livewell.errors import LivewellError

__all__ = [
    "ACCOUNT_WALLS",
    "FAMILIES",
    "FAULTS",
    "HOSTILE_CALLS",
    "STOPPING",
    "Fault",
    "FaultRefused",
    "check_faults",
    "hostile",
    "members",
]


class FaultRefused(LivewellError):
    """There is no such fault, or the shares make no sense."""


class Fault(NamedTuple):
    """One thing that goes wrong. needs: what the data must have for it (time, number)."""

    name: str
    family: str
    true: bool = False
    needs: str = ""


_FAMILIES: dict[str, tuple[str, ...]] = {
    "error": ("error_500", "error_503"),
    "connection": ("reset", "reset_in_body", "closed"),
    "truncated": ("truncated", "cut_off"),  # valid HTTP with broken JSON; fewer bytes than the head promised
    "silence": ("never_answers",),
    "drip": ("slow_drip",),
    "html": ("html", "html_as_json"),
    "empty": ("empty_array", "empty_object"),
    "error_object": ("error_message", "error_short"),  # with status 200
    "drift": ("renamed_field", "number_as_string"),
    "added": ("added_field",),
    "stale": ("stale_answer",),
    "future": ("future_time",),
    "mixed_up": ("wrong_symbol",),
    "huge": ("huge_body",),
    "bomb": ("gzip_bomb",),
    "bad_json": ("nan", "infinite", "long_number", "deep", "nul", "surrogate", "duplicate_key", "not_utf8"),
    "rate_wall": ("rate_seconds", "rate_date", "rate_past", "rate_huge", "rate_garbage", "rate_absent"),
    "bandwidth_wall": ("bandwidth",),
    "entitlement": ("entitlement_symbol", "entitlement_path", "exclusive", "limited_symbols"),
    "account": ("suspended", "invalid_key", "legacy_path"),
}
_TRUE = {"added_field", "stale_answer", "slow_drip"}
_NEEDS = {
    "stale_answer": "time",
    "future_time": "time",
    "number_as_string": "number",
    "nan": "number",
    "infinite": "number",
    "long_number": "number",
    "deep": "number",
    "duplicate_key": "number",
}
FAULTS = {
    name: Fault(name, family, name in _TRUE, _NEEDS.get(name, ""))
    for family, names in _FAMILIES.items()
    for name in names
}
FAMILIES = {family: tuple(FAULTS[name] for name in names) for family, names in _FAMILIES.items()}
HOSTILE_CALLS = 300
ACCOUNT_WALLS = ("bandwidth_wall", "account")  # families whose every member is about the whole account
STOPPING = (
    *("bandwidth", "suspended", "invalid_key", "legacy_path"),
    *("rate_huge", "entitlement_path", "exclusive", "limited_symbols"),
)


def members(name: str) -> tuple[Fault, ...]:
    """Give the faults that a name stands for: itself, or the members of a family."""
    if name in FAULTS:
        return (FAULTS[name],)
    if name in FAMILIES:
        return FAMILIES[name]
    msg = f"there is no fault {name!r}: it is a family ({', '.join(FAMILIES)}) or one fault ({', '.join(FAULTS)})"
    raise FaultRefused(msg)


def check_faults(shares: dict[str, float]) -> dict[str, float]:
    """Refuse names that mean nothing and shares that are no shares."""
    for name, share in shares.items():
        members(name)
        if not isinstance(share, int | float) or not 0 < share <= 1:
            msg = f"fault {name!r}: its share is above 0 and at most 1, not {share!r}"
            raise FaultRefused(msg)
    if sum(shares.values()) > 1.000_001:
        msg = f"the shares of all faults together are {sum(shares.values()):.3f}; more than 1 cannot be dealt"
        raise FaultRefused(msg)
    return shares


def hostile(*, calls: int = HOSTILE_CALLS, each: int = 10, without: Collection[str] = ()) -> dict[str, float]:
    """Give shares with which every family fires at least `each` times within `calls` answered
    calls.

    Faults are dealt, not diced (fault_deck.py): after n calls a fault of share p has fired at least
    n·p − 1 times, so each family gets (each + 1.2) / calls. All twenty families at 300 calls are 75
    % of the answers: hostile indeed. Diced, ten firings with 99.9 % certainty would need twice
    that, which 300 calls do not have. The single faults inside a family take turns: all 45 ten
    times each would need 45 · 11 = 495 faulty answers.

    After some faults a client that is right stops calling for hours (STOPPING). Where the rest must
    go on, leave families out (`without=ACCOUNT_WALLS`) and faults (`Knobs(never=STOPPING)`), or
    confine them to credentials, paths or symbols of their own (Knobs.confined).
    """
    shares = {family: (each + 1.2) / calls for family in FAMILIES if family not in without}
    if sum(shares.values()) > 1:
        msg = f"{len(shares)} families × {each} do not fit into {calls} calls: leave some out, or make more calls"
        raise FaultRefused(msg)
    return check_faults(shares)
