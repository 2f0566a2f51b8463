"""What the simulator's log proves.

Was a stored value ever served, is a verdict true, was a limit kept, which faults fired?

Pure over the log file. The market is made again from the seed in the log's first line. So every
true answer can be made again from its line (symbols, query, source time) and compared with what the
product stored. Nothing of the product's own is believed.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from livewell.apps.market.simulator.answer import digest_of
from livewell.apps.market.simulator.data.dataset import DATASETS, PATHS, rows_of
from livewell.apps.market.simulator.oracle.evidence import Evidence, Look, is_true
from livewell.apps.market.simulator.oracle.log import LogBroken, call_of, read_events
from livewell.apps.market.simulator.oracle.same_value import field_of, same
from livewell.apps.market.simulator.oracle.verdict_check import Claim, Interval, contradiction
from livewell.apps.market.simulator.policy.faults import FAMILIES, FAULTS
from livewell.testing.upstream import Call

__all__ = ["Judge", "Lie", "Stored", "calls", "calls_above_limit", "counts", "families_fired", "unfaithful"]

ONE_ROW = ("quote", "profile")
IDENTITIES = ("url", "date")  # fields by which a row is found quickly among hundreds


@dataclass(frozen=True, slots=True)
class Stored:
    """One value that the product holds: its rows, columns by name.

    whole: the rows must be one answer's rows, all of them.
    """

    type: str
    key: str
    rows: Sequence[Mapping[str, Any]]
    source_at: datetime | None = None
    fetched_at: datetime | None = None
    whole: bool = False


class Lie(NamedTuple):
    """One thing that is not so.

    Of a value: no_call, other_source_time, other_value, unknown_column. Of a verdict: not_served
    (it claims to be younger than anything served), too_old (fresh, but the source's time is not),
    not_lagging, has_a_time, was_served (it claims to be worse than what was served: wasteful, not
    dangerous), never_failed.
    """

    type: str
    key: str
    reason: str
    detail: str


class Judge:
    """Reads a log once, then answers questions about it.

    datasets names the simulator's dataset behind a type where the names differ ({"eod":
    "history"}); columns names the field behind a column where the spelling does not tell ({"news":
    {"published_at": "publishedDate"}}).
    """

    def __init__(
        self,
        log: Path,
        *,
        datasets: Mapping[str, str] | None = None,
        columns: Mapping[str, Mapping[str, str]] | None = None,
        slack_seconds: float = 2.0,
    ) -> None:
        self._evidence = Evidence(log)
        self._datasets = datasets or {}
        self._columns = columns or {}
        self._slack = slack_seconds

    def never_served(self, stored: Iterable[Stored]) -> list[Lie]:
        """Give the stored values that were never truly served for their key: wrong_values_stored is
        their number.
        """
        return [lie for value in stored if (lie := self._judge(value)) is not None]

    def false_verdicts(self, claims: Iterable[Claim], *, lost: Sequence[Interval] = ()) -> list[Lie]:
        """Give the verdicts that the log contradicts. lost: spans in which a worker or its database
        died, and answers with it.
        """
        judged = (
            (claim, contradiction(self._evidence, self._dataset(claim.type), claim, self._slack, lost))
            for claim in claims
        )
        return [
            Lie(
                claim.type, claim.key, reason, f"{claim.verdict} at {claim.at.isoformat()}; {self._last_answers(claim)}"
            )
            for claim, reason in judged
            if reason is not None
        ]

    def _last_answers(self, claim: Claim) -> str:
        """What a person would look for in the log."""
        at = claim.at.timestamp()
        seen = [
            one for one in self._evidence.seen(self._dataset(claim.type), claim.key) if one.wall <= at + self._slack
        ]
        return ", ".join(f"{one.answer} {at - one.wall:.1f} s before" for one in seen[-5:]) or "nothing was answered"

    def _judge(self, value: Stored) -> Lie | None:
        looks = self._looks(value)
        if not looks:
            return Lie(value.type, value.key, "no_call", "no true answer for this key was sent before it was fetched")
        timed = [look for look in looks if self._source_fits(value, look)]
        if not timed:
            return Lie(value.type, value.key, "other_source_time", f"no answer with source time {value.source_at}")
        if value.whole or self._dataset(value.type) in ONE_ROW:
            detail = self._differs_from_each(value, timed)
        else:
            detail = self._differs(value, [row for look in looks for row in self._evidence.rows(look)])
        if detail is None:
            return None
        return Lie(value.type, value.key, "unknown_column" if detail.startswith("column") else "other_value", detail)

    def _looks(self, value: Stored) -> list[Look]:
        """Distinct true looks at the key, newest first."""
        latest = value.fetched_at.timestamp() + self._slack if value.fetched_at else float("inf")
        seen = reversed(self._evidence.seen(self._dataset(value.type), value.key))
        true = (one.look for one in seen if one.wall <= latest and is_true(one.answer))
        return list(dict.fromkeys(look for look in true if look is not None))

    def _source_fits(self, value: Stored, look: Look) -> bool:
        name = PATHS[look.path].time_field
        if value.source_at is None or not name:
            return True
        if name == "timestamp":
            return value.source_at.timestamp() == look.source_at
        times = [row[name] for row in self._evidence.rows(look)]
        return bool(times) and same(value.source_at, max(times))

    def _differs_from_each(self, value: Stored, looks: Sequence[Look]) -> str | None:
        """Compare with one answer at a time; None: it is one of them."""
        first = ""
        for look in looks:
            rows = self._evidence.rows(look)
            detail: str | None = f"{len(value.rows)} rows, served were {len(rows)}"
            if len(rows) == len(value.rows):
                detail = self._differs(value, rows)
            if detail is None:
                return None
            first = first or detail
        return first

    def _differs(self, value: Stored, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """Say how the value differs from these rows; None: every row of it is one of them."""
        names = self._columns.get(value.type, {})
        identity = next((name for name in IDENTITIES if rows and name in rows[0]), "")
        found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            found[str(row.get(identity, ""))].append(row)
        for stored in value.rows:
            column = next((one for one in stored if names.get(one, one) == identity), None)
            near = found.get(_text(stored[column]), []) if column is not None else rows
            details = [_row_differs(stored, row, value.key, names) for row in near]
            if None not in details:
                return next(
                    (detail for detail in details if detail), f"a row that no answer has: {dict(stored)!r:.200}"
                )
        return None

    def _dataset(self, name: str) -> str:
        dataset = self._datasets.get(name, name)
        if dataset not in DATASETS:
            msg = f"type {name!r}: there is no dataset {dataset!r}; name one of {', '.join(DATASETS)} in datasets="
            raise LogBroken(msg)
        return dataset


def calls(log: Path) -> list[Call]:
    """Give every call with its end, for livewell.testing.call_windows (busiest_window, overlaps,
    use).
    """
    found: dict[int, Call] = {}
    unfinished: set[int] = set()
    for event in read_events(log):
        number = event.get("n", 0)
        match event["event"]:
            case "call":
                found[number] = call_of(event)
                if event["ended_ns"] is None:
                    unfinished.add(number)
            case "ended":
                ending = "answered" if event["how"] == "sent" else event["how"]
                ended = {"ended_ns": event["at_ns"], "ending": ending, "wire_bytes": event["bytes"]}
                found[number] = replace(found[number], **ended)
                unfinished.discard(number)
            case "started":
                for open_one in unfinished:
                    found[open_one] = replace(found[open_one], ended_ns=event["at_ns"], ending="killed")
                unfinished.clear()
    return sorted(found.values(), key=lambda call: call.at_ns)


def calls_above_limit(log: Path, calls_max: int, window_seconds: float) -> int:
    """Count the calls that made some window too full: all that arrived, refused ones too, per
    credential. 0: the limit was kept.
    """
    window_ns = round(window_seconds * 1e9)
    recent: defaultdict[str, deque[int]] = defaultdict(deque)
    above = 0
    for event in read_events(log):
        if event["event"] == "call":
            window = recent[event["credential"]]
            window.append(event["at_ns"])
            while event["at_ns"] - window[0] >= window_ns:
                window.popleft()
            above += len(window) > calls_max
    return above


def counts(log: Path) -> Counter[str]:
    """Count the answers by kind: ok, refusals, and every fault, those that never fired with 0."""
    fired = Counter(dict.fromkeys(FAULTS, 0))
    fired.update(event["answer"] for event in read_events(log) if event["event"] == "call")
    return fired


def families_fired(log: Path) -> dict[str, int]:
    """Count the faults by family."""
    fired = counts(log)
    return {family: sum(fired[fault.name] for fault in faults) for family, faults in FAMILIES.items()}


def unfaithful(log: Path) -> list[int]:
    """Give the numbers of ordinary answers whose body cannot be made again: none, or this judge is
    worth nothing.
    """
    market = Evidence(log).market
    wrong = []
    for event in read_events(log):
        if event["event"] == "call" and event["answer"] == "ok":
            rows = rows_of(market, event["path"], event["keys"], event["source_at"], event["query"])
            if digest_of(orjson.dumps(rows)) != event["digest"]:
                wrong.append(event["n"])
    return wrong


def _row_differs(stored: Mapping[str, Any], row: Mapping[str, Any], key: str, names: Mapping[str, str]) -> str | None:
    for column, found in stored.items():
        if column == "key" and "key" not in names:
            if found != key:
                return f"key is {found!r}, asked was {key!r}"
            continue
        name = names.get(column) or field_of(column, row)
        if name is None or name not in row:
            return f"column {column!r} is no field of the answer"
        if not same(found, row[name]):
            return f"{column} is {found!r}, served was {row[name]!r}"
    return None


def _text(value: Any) -> str:
    return value.isoformat() if type(value) is date else str(value)
