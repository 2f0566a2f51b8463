"""What the outbox promises to a receiver, in plain Python: no shards, no leases, no SQL.

The model knows what was committed, in which order, and what became of it. It does not say which
event comes next: it judges what the receiver was sent.

    committed ──arrives──▶ delivered
        ├──refused──▶ a dead letter: its key goes on, or is parked by it
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
    settled: bool = False  # the receiver's answer is in the database
    dead: bool = False


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
        if event.settled:
            return f"{number} came again after it was settled"
        if event.dead:
            return f"{number} came although it is a dead letter"
        for one in self.before(event):
            if one.dead and one.parking:
                return f"{number} came although its key is parked by {one.number}"
            if not one.arrived and not one.dead:
                return f"{number} came before {one.number}"
        event.arrived += 1
        return None

    def deliver(self, number: int) -> None:
        self.events[number].settled = True

    def bury(self, number: int) -> None:
        self.events[number].dead = True

    def due(self) -> set[int]:
        """What must have arrived once everybody is well again."""
        parked = {
            one.number
            for dead in self.events.values()
            if dead.dead and dead.parking
            for one in self.events.values()
            if one.lane == dead.lane and dead.committed < one.began
        }
        overlapping = {
            one.number
            for dead in self.events.values()
            if dead.dead and dead.parking
            for one in self.events.values()
            if one.lane == dead.lane and one.began <= dead.committed
        }
        wanted = {one.number for one in self.events.values() if not one.dead}
        return wanted - parked - overlapping
