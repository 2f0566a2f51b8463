"""Decide what a call gets.

The refusals come first, in FMP's order; then a fault, if one is due; then the true answer.

call ──▶ legacy path, key, suspended, limit, bandwidth, path, parameter, plan ──▶ fault due? ──▶ rows, or [] for the unknown
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from livewell.apps.market.simulator.answer import Answer, digest_of, refusal
from livewell.apps.market.simulator.data.dataset import PATHS, Dataset, asked, rows_of
from livewell.apps.market.simulator.data.prices import Market
from livewell.apps.market.simulator.data.trading_day import last_close
from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.policy.corrupt import Case, corrupt, traits
from livewell.apps.market.simulator.policy.fault_deck import FaultDeck
from livewell.apps.market.simulator.policy.faults import FAULTS, Fault, members
from livewell.apps.market.simulator.policy.limits import Bandwidth, CallWindow
from livewell.apps.market.simulator.request import ApiRequest

__all__ = ["Policy", "source_time"]

CACHE_BYTES_MAX = 64_000_000
ENTRY_BYTES = 600  # what an entry costs beside its body
NEXT_MAX = 10_000

Key = tuple[str, str, int, str]


def source_time(dataset: Dataset, wall: float, knobs: Knobs, symbols: tuple[str, ...] = ()) -> int:
    """Say at which instant the market is looked at."""
    at = int(wall)
    if knobs.frozen_at is not None and not set(knobs.frozen_symbols).isdisjoint(symbols):
        at = min(at, int(knobs.frozen_at))
    if knobs.sessions:
        at = last_close(at)
    step = dataset.step_seconds or knobs.tick_seconds
    return at - at % step


class Policy:
    """The knobs in force, and what must be remembered between calls; all of it bounded."""

    def __init__(self, market: Market, knobs: Knobs) -> None:
        self.market = market
        self.knobs = knobs
        self.counts: Counter[str] = Counter()  # by kind of answer; there are some sixty
        self.window = CallWindow()
        self.bandwidth = Bandwidth()
        self._next: deque[Fault] = deque()
        self._cache: OrderedDict[Key, Answer] = OrderedDict()
        self._cache_bytes = 0
        self._deal()

    # ── orders ──

    def turn(self, values: Mapping[str, Any]) -> None:
        """Turn some knobs; the faults are dealt anew."""
        self.knobs = self.knobs.changed(values)
        self._deal()

    def queue(self, names: list[str]) -> None:
        """Let the next calls have exactly these faults, whatever the shares say."""
        wanted = [members(name)[0] for name in names]
        self._next.extend(wanted[: NEXT_MAX - len(self._next)])

    def _deal(self) -> None:
        self._locked = frozenset(self.knobs.locked_symbols)
        faults, never = self.knobs.faults, self.knobs.never
        self._deck = FaultDeck(faults, self.market.seed, never) if faults else None
        self._confined = [(rule, FaultDeck(rule.faults, self.market.seed + 1)) for rule in self.knobs.confined]

    # ── calls ──

    def decide(self, request: ApiRequest, at_ns: int, wall: float) -> tuple[Answer, tuple[str, ...]]:
        """Decide one call; also the symbols that it asked for."""
        symbols = asked(request.path, request.query) if request.path in PATHS else None
        answer = self._refused(request, symbols, at_ns, wall)
        if answer is None:
            if symbols is None:
                raise AssertionError
            answer = self._answer(request, symbols, wall)
        if self.knobs.rate_headers and self.knobs.calls_max is not None:
            answer = replace(answer, headers=(*answer.headers, *self._rate_headers(request, answer, at_ns)))
        return answer, symbols or ()

    def _answer(self, request: ApiRequest, symbols: tuple[str, ...], wall: float) -> Answer:
        answer = self._true(request, symbols, wall)
        if answer.kind != "ok":
            return answer
        fault = self._fault(request, symbols)
        if fault is not None:
            return corrupt(fault, self._case(request, symbols, wall))
        if not self.knobs.etags:
            return answer
        etag = f'"{answer.digest}"'
        if request.if_none_match == etag:
            return replace(answer, kind="not_modified", status=304, body=b"", packed=b"", headers=(("ETag", etag),))
        return replace(answer, headers=(("ETag", etag),))

    def _rate_headers(self, request: ApiRequest, answer: Answer, at_ns: int) -> tuple[tuple[str, str], ...]:
        calls_max = self.knobs.calls_max or 0
        free = str(self.window.free_in_seconds(request.credential, at_ns, self.knobs.window_seconds))
        left = str(self.window.left(request.credential, calls_max))
        told = (("X-RateLimit-Limit", str(calls_max)), ("X-RateLimit-Remaining", left), ("X-RateLimit-Reset", free))
        return (*told, ("Retry-After", free)) if answer.kind == "limit" else told

    def _refused(self, request: ApiRequest, symbols: tuple[str, ...] | None, at_ns: int, wall: float) -> Answer | None:
        kind = self._account_refusal(request, at_ns, wall)
        if kind is None:
            kind = self._plan_refusal(request, symbols)
        if kind is None:
            return None
        return refusal(kind, WORDS.get(kind, kind))

    def _account_refusal(self, request: ApiRequest, at_ns: int, wall: float) -> str | None:
        knobs, credential = self.knobs, request.credential
        if request.path.startswith(("/api/v3", "/api/v4")):
            return "old_path"
        if not credential or (knobs.credentials and credential not in knobs.credentials):
            return "no_key"
        if credential in knobs.suspended or "*" in knobs.suspended:
            return "suspended_account"
        if knobs.calls_max is not None and not self.window.admit(
            credential, at_ns, knobs.calls_max, knobs.window_seconds
        ):
            return "limit"
        if (
            knobs.bandwidth_bytes_max is not None
            and knobs.bandwidth_bytes_used + self.bandwidth.used(credential, wall) >= knobs.bandwidth_bytes_max
        ):
            return "bandwidth_limit"
        return None

    def _plan_refusal(self, request: ApiRequest, symbols: tuple[str, ...] | None) -> str | None:
        knobs, path = self.knobs, request.path
        checks = (
            (request.method != "GET", "method"),
            (path not in PATHS, "no_such_path"),
            (path in knobs.locked_paths, "locked_path"),
            (path in knobs.exclusive_paths, "exclusive_path"),
            (symbols is None, "missing_parameter"),
            (bool(self._locked) and not self._locked.isdisjoint(symbols or ()), "locked_symbol"),
        )
        return next((kind for refused, kind in checks if refused), None)

    def _fault(self, request: ApiRequest, symbols: tuple[str, ...]) -> Fault | None:
        has = traits(PATHS[request.path])
        if self._next:
            if not self._next[0].needs or self._next[0].needs in has:
                return self._next.popleft()
            return None
        for rule, deck in self._confined:
            if rule.fits(request.path, symbols, request.credential):
                fault = deck.deal(has)
                if fault is not None:
                    return fault
        return self._deck.deal(has) if self._deck is not None else None

    def _true(self, request: ApiRequest, symbols: tuple[str, ...], wall: float) -> Answer:
        source_at = source_time(PATHS[request.path], wall, self.knobs, symbols)
        rest = {name: value for name, value in request.query.items() if name not in ("symbol", "symbols")}
        key = (request.path, ",".join(symbols), source_at, repr(rest) if rest else "")
        known = self._cache.get(key)
        if known is None:
            rows = rows_of(self.market, request.path, symbols, source_at, request.query)
            body = orjson.dumps(rows)
            known = Answer("ok" if rows else "unknown_symbol", 200, body, digest_of(body), source_at)
            self._keep(key, known)
        return known

    def _keep(self, key: Key, answer: Answer) -> None:
        # Twice the body: gzip may keep a second form of it.
        self._cache[key] = answer
        self._cache_bytes += 2 * len(answer.body) + ENTRY_BYTES
        while self._cache_bytes > CACHE_BYTES_MAX:
            _, oldest = self._cache.popitem(last=False)
            self._cache_bytes -= 2 * len(oldest.body) + ENTRY_BYTES

    def _case(self, request: ApiRequest, symbols: tuple[str, ...], wall: float) -> Case:
        dataset, knobs, market = PATHS[request.path], self.knobs, self.market
        source_at = source_time(dataset, wall, knobs, symbols)
        earlier = wall - max(dataset.stale_seconds, 10 * knobs.tick_seconds)
        older_at = source_time(dataset, earlier, knobs, symbols)
        others = market.universe.others(symbols)
        return Case(
            dataset=dataset,
            rows=rows_of(market, request.path, symbols, source_at, request.query),
            source_at=source_at,
            wall=wall,
            knobs=knobs,
            older=lambda: (rows_of(market, request.path, symbols, older_at, request.query), older_at),
            other=lambda: rows_of(market, request.path, others, source_at, request.query),
        )

    def count(self, kind: str) -> None:
        """Count an answer of this kind."""
        self.counts[kind] += 1

    def report(self) -> dict[str, Any]:
        """Give the counts: calls, answers that are no faults, faults and their families."""
        faults = {name: self.counts[name] for name in FAULTS}
        families: Counter[str] = Counter()
        for fault in FAULTS.values():
            families[fault.family] += self.counts[fault.name]
        others = {kind: count for kind, count in self.counts.items() if kind not in FAULTS}
        return {
            "calls": self.counts.total(),
            "answers": others,
            "faults": faults,
            "families": dict(families),
        }


# Kinds that a knob causes have names of their own: they are not faults that were dealt.
WORDS = {
    "old_path": "legacy_path",
    "no_key": "invalid_key",
    "suspended_account": "suspended",
    "limit": "rate",
    "bandwidth_limit": "bandwidth",
    "locked_path": "entitlement_path",
    "exclusive_path": "exclusive",
    "locked_symbol": "entitlement_symbol",
}
