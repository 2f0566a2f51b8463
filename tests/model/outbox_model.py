"""What the outbox promises to a receiver, in plain Python: no shards, no leases, no SQL.

The model knows what was committed, in which order, and what became of it. It does not say which
event comes next: it judges what the receiver was sent.

    committed ──arrives──▶ delivered
        ├──refused──▶ a dead letter: its key goes on, or is parked by it until redrive or discard
        └──arrives, and nobody says so──▶ may arrive again, with the same content

An event may arrive only if every earlier one of its key has arrived, or is a dead letter that parks
nothing. Earlier means: committed before this one's transaction began.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class ModelEvent:
    """One committed event."""

    number: int
    lane: str
    parking: bool
    began: int  # steps: when its transaction began, and when it was committed
    committed: int
    arrived: int = 0
    excused: bool = False  # its last arrival was not answered, or the answer was lost
    settled: bool = False  # the receiver's answer is in the database
    dead: bool = False
    again: bool = False  # redriven: it comes when it comes, and what waited for it comes after it
    discarded: bool = False


@dataclass(slots=True)
class OutboxModel:
    """Everything that was committed."""

    step: int = 0
    events: dict[int, ModelEvent] = field(default_factory=dict)

    def commit(self, number: int, lane: str, *, parking: bool, began: int) -> None:
        self.events[number] = ModelEvent(number, lane, parking, began, self.step)

    def before(self, event: ModelEvent) -> list[ModelEvent]:
        """Those of its key that were committed before it began."""
        return [one for one in self.events.values() if one.lane == event.lane and one.committed < event.began]

    def arrive(self, number: int) -> str | None:
        """The receiver gets it; answers what is wrong with that."""
        event = self.events.get(number)
        if event is None:
            return f"{number} was never committed"
        if event.settled or (event.arrived and not event.excused):
            return f"{number} came twice, and nothing had failed"
        if event.dead:
            return f"{number} came although it is a dead letter"
        for one in self.before(event):
            if one.dead and one.parking and not one.discarded:
                return f"{number} came although its key is parked by {one.number}"
            if not one.arrived and not one.dead and not self._overtaken(one):
                return f"{number} came before {one.number}"
        event.arrived += 1
        event.excused = False
        return None

    def excuse(self, number: int) -> None:
        """It may come once more."""
        self.events[number].excused = True

    @staticmethod
    def _overtaken(event: ModelEvent) -> bool:
        """A redriven event of a topic that continues: later ones may have gone before it."""
        return event.again and not event.parking

    def deliver(self, number: int) -> None:
        self.events[number].settled = True

    def bury(self, number: int) -> None:
        self.events[number].dead = True

    def redrive(self, number: int) -> None:
        self.events[number].dead = False
        self.events[number].again = True

    def discard(self, number: int) -> None:
        self.events[number].discarded = True

    def due(self) -> set[int]:
        """What must have arrived once everybody is well again."""
        held = {
            one.number
            for dead in self.events.values()
            if dead.dead and dead.parking and not dead.discarded
            for one in self.events.values()
            if one.lane == dead.lane
        }
        return {one.number for one in self.events.values() if not one.dead} - held
