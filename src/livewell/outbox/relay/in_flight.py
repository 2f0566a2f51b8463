"""What one relay has in flight, and what became of it since the last exchange.

    claimed ──▶ unsettled ──settle()──▶ settled ──taken for an exchange──▶ the database knows
                    ├──released: nobody is to blame, it goes again
                    ├──one before it in its lane was not delivered: released
                    └──the exchange failed: settled again, and told with the next one

An event that was released may be claimed again while its first batch is still under way. Then it is
another Event with the same number, and words about the first one mean nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from livewell.db.link import as_array, as_numbers
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Verdict


@dataclass(slots=True)
class Settled:
    """Events with what became of each, as exchange_events takes them."""

    pairs: list[tuple[Event, Outcome]]

    def columns(self) -> tuple[str, str, str, str]:
        """Numbers, verdicts, details and times, as arrays of Postgres.

        Nothing is said in detail of what was delivered, and that comes last: the last two arrays
        end before it. An event takes 5.3 µs of our processor from claim to finish; as lists it
        took 6.5.
        """
        pairs = self.pairs
        bad = [(event, outcome) for event, outcome in pairs if outcome is not DELIVERED]
        if bad:
            pairs = bad + [(event, outcome) for event, outcome in pairs if outcome is DELIVERED]
        return (
            as_numbers(event.number for event, _ in pairs),
            "{" + ",".join(outcome.verdict for _, outcome in pairs) + "}",
            as_array(outcome.detail.replace("\x00", "") for _, outcome in bad),
            "{" + ",".join("NULL" if one.again_seconds is None else repr(one.again_seconds) for _, one in bad) + "}",
        )

    def count(self) -> dict[str, int]:
        """How many of each verdict."""
        counts: dict[str, int] = {}
        for _, outcome in self.pairs:
            counts[outcome.verdict] = counts.get(outcome.verdict, 0) + 1
        return counts


class InFlight:
    """The unsettled events of one relay."""

    def __init__(self) -> None:
        self._unsettled: dict[int, Event] = {}
        self._lanes: Counter[int] = Counter()  # how many of them, by lane
        self._settled: list[tuple[Event, Outcome]] = []

    def __len__(self) -> int:
        return len(self._unsettled)

    @property
    def has_news(self) -> bool:
        """True if something was settled since the last exchange."""
        return bool(self._settled)

    def add(self, events: Iterable[Event]) -> None:
        """These were claimed."""
        for event in events:
            self._drop(event.number)
            self._unsettled[event.number] = event
            self._lanes[event.lane] += 1

    def settle(self, event: Event, outcome: Outcome) -> None:
        """The sink says what became of one; only the first word counts.

        Behind one that was not delivered, the rest of its lane is not sent: it is released at once,
        so that the database does not take it for being on its way.
        """
        if not self.holds(event):
            return
        self._drop(event.number)
        self._settled.append((event, outcome))
        if outcome.verdict is not Verdict.DELIVERED and event.lane in self._lanes:
            behind = [one for one in self._unsettled.values() if one.lane == event.lane and one.number > event.number]
            self.release(behind)

    def release(self, events: Iterable[Event]) -> None:
        """These go again, and nobody is to blame."""
        for event in events:
            if self.holds(event):
                self._drop(event.number)

    def _drop(self, number: int) -> None:
        event = self._unsettled.pop(number, None)
        if event is not None:
            self._lanes[event.lane] -= 1
            if not self._lanes[event.lane]:
                del self._lanes[event.lane]

    def holds(self, event: Event) -> bool:
        """True if this one is still to be sent, or on its way."""
        return self._unsettled.get(event.number) is event

    def unsettled(self, events: Iterable[Event]) -> list[Event]:
        """Those of a batch whose fate is not known yet."""
        return [event for event in events if self.holds(event)]

    def take(self) -> tuple[Settled, list[int]]:
        """What to tell the database: what was settled, and what is still on its way."""
        settled, self._settled = self._settled, []
        return Settled(settled), list(self._unsettled)

    def put_back(self, settled: Settled) -> None:
        """The exchange failed: tell it with the next one."""
        self._settled = settled.pairs + self._settled

    def forget(self) -> None:
        """The lease is lost: others have all of it."""
        self._unsettled.clear()
        self._lanes.clear()
        self._settled.clear()


def unknown(events: Sequence[Event], detail: str) -> list[tuple[Event, Outcome]]:
    """All of these, with the verdict that nobody knows."""
    return [(event, Outcome(Verdict.UNKNOWN, detail)) for event in events]
