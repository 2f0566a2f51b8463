"""What can be turned while the simulator runs.

A demo writes it as a value, and the server's process reads it.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from livewell.apps.market.simulator.policy.faults import FAULTS, check_faults
from livewell.errors import LivewellError

__all__ = ["Confined", "Knobs", "KnobsRefused"]

NAMES_MAX = 5_000  # knobs travel as one argument of the command line, which takes 128 KiB


class KnobsRefused(LivewellError):
    """A knob that does not exist, or a value it cannot have; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """Faults for some calls only: those that fit every list that is not empty.

    They come before the general ones.
    """

    faults: dict[str, float]
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()  # as the log names them

    def fits(self, path: str, symbols: tuple[str, ...], credential: str) -> bool:
        """Say whether a call is one of those."""
        return (
            (not self.paths or path in self.paths)
            and (not self.credentials or credential in self.credentials)
            and (not self.symbols or not set(self.symbols).isdisjoint(symbols))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Everything but the seed and the number of symbols, which make the market what it is."""

    # ── the market ──
    tick_seconds: int = 5  # how often prices move; timestamps are multiples of it
    clock_shift_seconds: float = 0.0  # its clock is ahead of the machine's: for tests whose database travels in time
    sessions: bool = False  # True: prices and timestamps stand still while the exchange is closed
    frozen_at: float | None = (
        None  # Unix seconds: from then on the source of frozen_symbols stands still, and answers 200
    )
    frozen_symbols: tuple[str, ...] = ()

    # ── the way there ──
    latency_seconds: float = 0.0
    latency_jitter_seconds: float = 0.0  # up to so much more, drawn from the seed

    # ── what FMP does not document, and others do ──
    etags: bool = False  # true answers carry an ETag, and 304 answers who has it
    rate_headers: bool = False  # X-RateLimit-*, and Retry-After on the limit's 429

    # ── what goes wrong ──
    faults: dict[str, float] = field(default_factory=dict)  # fault or family → share of the answers
    never: tuple[str, ...] = ()  # faults that are left out when their family's turn comes
    confined: tuple[Confined, ...] = ()
    drip_bytes_per_second: float = 20.0
    huge_bytes: int = 200_000_000
    bomb_bytes: int = 100_000_000
    retry_after_seconds: int = 2  # of rate_seconds and rate_date

    # ── limits, per credential ──
    calls_max: int | None = None
    window_seconds: float = 60.0
    bandwidth_bytes_max: int | None = None  # trailing 30 days
    bandwidth_bytes_used: int = 0  # counted as used before the log began

    # ── who may what ──
    credentials: tuple[str, ...] = ()  # accepted ones, as the log names them; empty: any that is not empty
    suspended: tuple[str, ...] = ()  # credentials; "*": all
    locked_symbols: tuple[str, ...] = ()  # 402: the plan does not include the symbol
    locked_paths: tuple[str, ...] = ()  # 402: the plan does not include the path
    exclusive_paths: tuple[str, ...] = ()  # 403

    def __post_init__(self) -> None:
        check_faults(self.faults)
        for name in self.never:
            if name not in FAULTS:
                msg = f"never={name!r}: it names single faults: {', '.join(FAULTS)}"
                raise KnobsRefused(msg)
        for name, low, high in RANGES:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not low <= value <= high):
                msg = f"{name}={value!r}: it is between {low:,} and {high:,}"
                raise KnobsRefused(msg)
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                msg = f"{name}={getattr(self, name)!r}: it is true or false"
                raise KnobsRefused(msg)
        if not isinstance(self.tick_seconds, int):
            msg = f"tick_seconds={self.tick_seconds!r}: a whole number, since the timestamps are whole seconds"
            raise KnobsRefused(msg)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Give these knobs with some turned; what is not named stays."""
        known = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            msg = f"there is no knob {unknown[0]!r}; there are: {', '.join(known)}"
            raise KnobsRefused(msg)
        try:
            given = {name: _read(name, value) for name, value in values.items()}
            return type(self)(**{**known, **given})
        except TypeError as error:
            msg = f"a knob has a value of the wrong type: {error}"
            raise KnobsRefused(msg) from error

    def as_json(self) -> dict[str, Any]:
        """Write them down; changed() reads it back."""
        return dataclasses.asdict(self)


FLAGS = ("sessions", "etags", "rate_headers")
LISTS = ("never", "frozen_symbols", "credentials", "suspended", "locked_symbols", "locked_paths", "exclusive_paths")
RANGES: tuple[tuple[str, float, float], ...] = (
    ("tick_seconds", 1, 86_400),
    ("clock_shift_seconds", -(10**9), 10**9),
    ("frozen_at", 0, 10**11),
    ("latency_seconds", 0, 600),
    ("latency_jitter_seconds", 0, 600),
    ("drip_bytes_per_second", 0.01, 1e9),
    ("huge_bytes", 1_000, 4_000_000_000),
    ("bomb_bytes", 1_000_000, 4_000_000_000),
    ("retry_after_seconds", 0, 86_400),
    ("calls_max", 1, 1_000_000),
    ("window_seconds", 0.1, 86_400),
    ("bandwidth_bytes_max", 1, 10**15),
    ("bandwidth_bytes_used", 0, 10**15),
)


def _read(name: str, value: Any) -> Any:
    if name == "confined":
        return tuple(one if isinstance(one, Confined) else _confined(one) for one in value)
    if name in LISTS:
        listed = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        if not listed or len(value) > NAMES_MAX:
            msg = f"{name}: a list of at most {NAMES_MAX:,} texts"
            raise KnobsRefused(msg)
        return tuple(value)
    if name == "faults":
        return check_faults(dict(value))
    return value


def _confined(values: Mapping[str, Any]) -> Confined:
    lists = {name: tuple(values.get(name, ())) for name in ("paths", "symbols", "credentials")}
    return Confined(faults=check_faults(dict(values["faults"])), **lists)
