"""The log as evidence: what was answered about which key, and when.

With it comes the market, in which every true answer can be made again.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from livewell.apps.market.simulator.data.dataset import PATHS, rows_of
from livewell.apps.market.simulator.data.prices import Market
from livewell.apps.market.simulator.oracle.log import LogBroken, read_events
from livewell.apps.market.simulator.policy.faults import FAULTS

__all__ = ["Evidence", "Look", "Seen", "is_true"]

ROWS_KEPT = 20_000


def is_true(answer: str) -> bool:
    """Say whether what such an answer says of its key is so."""
    return answer in ("ok", "not_modified") or (answer in FAULTS and FAULTS[answer].true)


class Look(NamedTuple):
    """One look at one key: enough to make its rows again."""

    path: str
    key: str
    source_at: int
    query: tuple[tuple[str, str], ...]


class Seen(NamedTuple):
    """One answer about one key. look None: it said nothing about the market (a refusal, HTML)."""

    number: int
    wall: float
    answer: str
    look: Look | None


class Evidence:
    """One log, read once.

    Its memory grows with the log: it is for the end of a run, not for a service.
    """

    def __init__(self, log: Path) -> None:
        self.downs: list[tuple[float, float]] = []  # from its last call to its next start: nobody can say more closely
        self._last = 0.0
        self.unfinished: set[int] = set()
        self._by_key: defaultdict[tuple[str, str], list[Seen]] = defaultdict(list)
        self._market: Market | None = None
        for event in read_events(log):
            self._take(event, log)
        if self._market is None:
            msg = f"{log}: it is empty; nothing can be judged by it"
            raise LogBroken(msg)
        self.market: Market = self._market
        self.rows: Callable[[Look], list[dict[str, Any]]] = lru_cache(maxsize=ROWS_KEPT)(self._rows)

    def seen(self, dataset: str, key: str) -> list[Seen]:
        """Every answer about a key, oldest first."""
        return self._by_key.get((dataset, key), [])

    def _rows(self, look: Look) -> list[dict[str, Any]]:
        return rows_of(self.market, look.path, (look.key,), look.source_at, dict(look.query))

    def _take(self, event: dict[str, Any], log: Path) -> None:
        match event["event"]:
            case "started":
                self._start(event, log)
            case "call":
                self._call(event, log)
            case "ended" if event["how"] == "sent":
                self.unfinished.discard(event["n"])

    def _start(self, event: dict[str, Any], log: Path) -> None:
        if self._market is None:
            self._last = event["wall"]
            self._market = Market(event["seed"], event["symbols"])
        elif (event["seed"], event["symbols"]) != (self._market.seed, len(self._market.universe.symbols)):
            msg = f"{log}: two markets in one log: give each seed and number of symbols a log of its own"
            raise LogBroken(msg)
        else:
            self.downs.append((self._last, event["wall"]))

    def _call(self, event: dict[str, Any], log: Path) -> None:
        if self._market is None:
            msg = f"{log}: it does not begin with a start"
            raise LogBroken(msg)
        self._last = event["wall"]
        if event["ended_ns"] is None:
            self.unfinished.add(event["n"])
        dataset = PATHS.get(event["path"])
        if dataset is None:
            return
        query = tuple(sorted(event["query"].items()))
        for key in event["keys"]:
            # In a batch the known symbols are answered, and the unknown ones left out.
            answer = event["answer"] if key in self._market.universe or event["answer"] != "ok" else "unknown_symbol"
            look = None if event["source_at"] is None else Look(event["path"], key, event["source_at"], query)
            self._by_key[dataset.name, key].append(Seen(event["n"], event["wall"], answer, look))
