"""Two judges from outside: union-find over the calls, and the receiver's own log over the events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from livewell.apps.contacts.demo.people import Pair


@dataclass(slots=True)
class Verdict:
    """What was found. Every line of `lies` is a violation."""

    calls: int = 0
    people: int = 0
    contacts: int = 0
    merges: int = 0
    events: int = 0
    received: int = 0
    duplicates: int = 0
    kills: int = 0
    seconds: float = 0.0
    lies: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Nothing was wrong."""
        return not self.lies

    def as_json(self) -> dict[str, Any]:
        """Figures, the number of violations, and the first of them."""
        return {**asdict(self), "violations": len(self.lies), "lies": self.lies[:20]}


def judge_contacts(calls: Iterable[Sequence[Pair]], groups: Iterable[Sequence[Pair]], verdict: Verdict) -> None:
    """One contact for each connected component of what was said together, and no other."""
    expected = components(calls)
    found = {frozenset(group) for group in groups}
    verdict.people, verdict.contacts = len(expected), len(found)
    verdict.lies += [f"no one contact has all of {sorted(group)}" for group in expected - found]
    verdict.lies += [f"nobody said that these are one person: {sorted(group)}" for group in found - expected]


def components(calls: Iterable[Sequence[Pair]]) -> set[frozenset[Pair]]:
    """Union-find, in the form in which contacts are stored."""
    parent: dict[Pair, Pair] = {}

    def root(one: Pair) -> Pair:
        parent.setdefault(one, one)
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for pairs in calls:
        normal = [(kind, value.lower() if kind == "email" else value) for kind, value in pairs]
        for one in normal:
            parent[root(one)] = root(normal[0])
    found: dict[Pair, set[Pair]] = {}
    for one in list(parent):
        found.setdefault(root(one), set()).add(one)
    return {frozenset(group) for group in found.values()}


def judge_events(emitted: Sequence[tuple[str, str, str]], file: Path, verdict: Verdict) -> None:
    """Nothing lost, nothing that was not emitted, and each key in the order of emission.

    emitted: id, key and topic, in the order of emission. A duplicate with the same id is allowed:
    the relay was killed between the delivery and its word about it.
    """
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    received = [(one["id"], one["key"], one["topic"]) for one in map(json.loads, lines)]
    first = list(dict.fromkeys(received))
    verdict.events, verdict.received = len(emitted), len(received)
    verdict.duplicates = len(received) - len(first)
    verdict.lies += [f"event {one} was never received" for one in set(emitted) - set(first)]
    verdict.lies += [f"event {one} was never emitted" for one in set(first) - set(emitted)]
    wanted, got = _by_key(emitted), _by_key(first)
    verdict.lies += [f"events of {key} came out of order" for key in got if got[key] != wanted.get(key)]


def _by_key(events: Iterable[tuple[str, str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, key, _ in events:
        found.setdefault(key, []).append(number)
    return found
