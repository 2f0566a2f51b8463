"""What is played: the quiet day, and the hostile one.

Quiet: one account with FMP's 300 calls a minute. Hostile: the same for each of six accounts,
because a wall silences the account that ran into it. Four more accounts are there only to be walled
off for good (ACCOUNT_WALLS), so that the demo lives on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from livewell.apps.market import type_files
from livewell.apps.market.simulator import ACCOUNT_WALLS, Confined, Knobs, credential_name, hostile

HOST = "127.0.0.1"
CALLS_PER_MINUTE = 300  # of one account, as FMP's plan Starter has it
SECRET = "simulated-{}"  # noqa: S105 - the simulator takes any
TYPE_WALL_PATHS = ("/stable/income-statement", "/stable/balance-sheet-statement", "/stable/cash-flow-statement")
TYPE_WALLS = (
    "entitlement_path",
    "exclusive",
    "legacy_path",
)  # after one of them a type is parked, until somebody applies it again


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to play it. accounts: names of environment variables, as in the upstream's file."""

    accounts: tuple[str, ...]
    walled: Mapping[str, Mapping[str, float]]  # account → the faults that it alone has
    sessions: int
    symbols: int  # that viewers look at
    pages: int  # of those, how many have their news, earnings, statements and history looked at too
    looks: float  # symbols per viewer, on average
    steepness: float  # of Zipf's law
    quote_ttl: str
    quote_source_age: str | None  # how old the source's own time of a quote may be; None: as the file says
    frozen: int  # of the symbols on the screen: their source stands still from the beginning, and answers 200
    quick_ttl_seconds: float  # of the symbols on the screen
    other_ttl: str | None
    negative_ttl: str | None
    batch: bool
    breaker: Mapping[str, Any]
    concurrency: int
    faults: Mapping[str, float]

    @property
    def hostile(self) -> bool:
        """Whether anything goes wrong on purpose."""
        return bool(self.faults)

    @property
    def credentials(self) -> tuple[str, ...]:
        """All accounts."""
        return (*self.accounts, *self.walled)

    @property
    def calls_allowed_per_minute(self) -> int:
        """By all accounts together; each has its own limit."""
        return CALLS_PER_MINUTE * len(self.credentials)

    @property
    def environment(self) -> dict[str, str]:
        """The credentials, as the worker finds them; a real FMP_API_KEY never gets to the
        simulator.
        """
        return {name: SECRET.format(name.lower()) for name in self.credentials}

    def knobs(self) -> Knobs:
        """How the simulator is turned."""
        confined = [
            Confined(faults=dict(faults), credentials=(credential_name(self.environment[name]),))
            for name, faults in self.walled.items()
        ]
        if self.hostile:
            confined.append(Confined(faults=dict.fromkeys(TYPE_WALLS, 0.06), paths=TYPE_WALL_PATHS))
        return Knobs(
            tick_seconds=1,
            latency_seconds=0.02,
            latency_jitter_seconds=0.06,
            calls_max=CALLS_PER_MINUTE,
            faults=dict(self.faults),
            never=("rate_huge", *TYPE_WALLS),
            confined=tuple(confined),
        )


QUIET = Scenario(
    accounts=("FMP_API_KEY",),
    walled={},
    sessions=300,
    symbols=120,
    pages=8,
    looks=3,
    steepness=1.0,
    quote_ttl="15s",
    quote_source_age=None,
    frozen=0,
    quick_ttl_seconds=5,
    other_ttl=None,
    negative_ttl=None,
    batch=True,
    breaker={"open_for": "3s", "open_max": "6s"},  # a simulator that was killed is back in a second, not in a minute
    concurrency=10,
    faults={},
)
HOSTILE = Scenario(
    accounts=("FMP_API_KEY", *(f"FMP_API_KEY_{number}" for number in range(2, 7))),
    walled={
        "FMP_API_KEY_BYTES_A": {"bandwidth": 1.0},
        "FMP_API_KEY_BYTES_B": {"bandwidth": 1.0},
        "FMP_API_KEY_CLOSED": {"suspended": 0.5, "invalid_key": 0.5},
        "FMP_API_KEY_LATE": {"rate_huge": 1.0},
    },
    sessions=300,
    symbols=400,
    pages=8,
    looks=6,
    steepness=0.7,
    quote_ttl="12s",
    quote_source_age="15s",
    frozen=1,
    quick_ttl_seconds=5,
    other_ttl="20s",
    negative_ttl="5s",
    batch=False,
    breaker={"share": "60%", "open_for": "2s", "open_max": "4s", "wall": "3s"},
    concurrency=60,
    faults=hostile(calls=1200, each=11, without=ACCOUNT_WALLS),
)


def documents(scenario: Scenario, base_url: str) -> list[tuple[Path, dict[str, Any]]]:
    """The shipped files as this scenario has them: the upstream is the simulator, and what is
    looked at goes stale in seconds.

    The simulated exchange never closes, so the rule of quotes is their age, at night too.
    """
    found = []
    for path in type_files():
        document = tomllib.loads(path.read_text(), parse_float=Decimal)
        if "upstream" in document:
            _turn_upstream(document["upstream"], scenario, base_url)
        else:
            _turn_type(document, scenario)
        found.append((path, document))
    return found


def _turn_upstream(upstream: dict[str, Any], scenario: Scenario, base_url: str) -> None:
    upstream |= {
        "base_url": base_url,
        "credentials": list(scenario.credentials),
        "concurrency": scenario.concurrency,
        "breaker": dict(scenario.breaker),
    }


def _turn_type(document: dict[str, Any], scenario: Scenario) -> None:
    kind, answer = document["type"], document["answer"]
    if kind["name"] == "quote":
        kind["ttl"] = scenario.quote_ttl
        answer["rule"] = "age"
        if scenario.quote_source_age is not None:
            answer["max_source_age"] = scenario.quote_source_age
        del answer["calendar"]
        if not scenario.batch:
            del document["fetch"]["batch"]
    elif scenario.other_ttl is not None:
        kind["ttl"] = scenario.other_ttl
    if scenario.negative_ttl is not None:
        kind["negative_ttl"] = scenario.negative_ttl
