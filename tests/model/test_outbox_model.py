"""Random lives of an outbox, on a real database with a virtual clock; the judge is what the receiver was sent.

Transactions begin, emit and commit in any order; relays claim, deliver, fail, hang, die, freeze and
give up shards; letters die and keys are parked. The quick form is the same 40 examples in every
run; LIVEWELL_MODEL_EXAMPLES=5000 tries that many new ones. Seen to fail when a burial left its shards
with the dead, and when a claim takes the newest first.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.model.outbox_model import OutboxModel
from tests.support.outbox_sql import PARKING, TOPIC, OutboxSession

EXAMPLES = int(os.environ.get("LIVEWELL_MODEL_EXAMPLES", "0"))
picks = st.integers(0, 11)
keys = st.sampled_from(["a", "a", "b", "c"])


@dataclass(slots=True)
class Open:
    """A transaction that has begun."""

    session: OutboxSession
    began: int
    emitted: list[tuple[int, str, bool]] = field(default_factory=list)


@dataclass(slots=True)
class Holder:
    """A relay as its process knows it: what it has in hand, lane by lane."""

    id: int
    hand: list[tuple[int, int]] = field(default_factory=list)  # number and lane


class OutboxMachine(RuleBasedStateMachine):
    """One sink, a few relays, two producers."""

    def __init__(self, outbox: OutboxSession, producers: list[OutboxSession]) -> None:
        super().__init__()
        self.outbox = outbox
        self.idle = producers
        self.open: list[Open] = []
        self.model = OutboxModel()
        self.relays: list[Holder] = []
        self.zombies: list[Holder] = []

    @initialize()
    def a_relay_on_an_empty_outbox(self) -> None:
        self.outbox.rows("UPDATE livewell_test.clock SET ahead = '0'")
        self.outbox.reset()
        self.outbox.sink(attempts=3, backoff_base_seconds=0, backoff_cap_seconds=0)
        self.start()
        self.start()

    def teardown(self) -> None:
        for one in self.open:
            one.session.connection.execute("ROLLBACK")

    # -- producers --------------------------------------------------------------------------------

    @precondition(lambda self: self.idle and len(self.open) < 2)
    @rule()
    def begin(self) -> None:
        self.model.step += 1
        session = self.idle[len(self.open) % len(self.idle)]
        if all(one.session is not session for one in self.open):
            session.connection.execute("BEGIN")
            self.open.append(Open(session, self.model.step))

    @precondition(lambda self: self.open)
    @rule(pick=picks, key=keys, parking=st.booleans(), n=st.integers(1, 3))
    def emit(self, pick: int, key: str, parking: bool, n: int) -> None:
        one = self.open[pick % len(self.open)]
        numbers = one.session.emit(key, n=n, topic=PARKING if parking else TOPIC)
        one.emitted += [(number, key, parking) for number in numbers]

    @precondition(lambda self: self.open)
    @rule(pick=picks, commits=st.sampled_from([True, True, True, False]))
    def end(self, pick: int, commits: bool) -> None:
        self.model.step += 1
        one = self.open.pop(pick % len(self.open))
        one.session.connection.execute("COMMIT" if commits else "ROLLBACK")
        if commits:
            self._committed(one.emitted, one.began)

    @rule(key=keys, n=st.integers(1, 4), parking=st.booleans())
    def emit_at_once(self, key: str, n: int, parking: bool) -> None:
        """Each in a transaction of its own."""
        for number in self.outbox.emit(key, n=n, topic=PARKING if parking else TOPIC):
            self.model.step += 2
            self._committed([(number, key, parking)], self.model.step - 1)

    def _committed(self, emitted: list[tuple[int, str, bool]], began: int) -> None:
        for number, key, parking in emitted:
            self.model.commit(number, key, parking=parking, began=began)

    # -- relays -----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.relays) < 4)
    @rule()
    def start(self) -> None:
        self.relays.append(Holder(self.outbox.relay()))

    @rule(
        pick=picks,
        limit=st.integers(0, 6),
        verdicts=st.lists(st.sampled_from(["delivered", "delivered", "delivered", "failed", "refused", "unknown"])),
        late=st.integers(0, 3),
        lost=st.sampled_from([False, False, False, True]),
        careless=st.booleans(),
    )
    def exchange(self, *, pick: int, limit: int, verdicts: list[str], late: int, lost: bool, careless: bool) -> None:
        """Send a part of what is in hand, and say so; some is late, and sometimes the answer is lost.

        Careless: what is not sent because one before it failed is told to be on its way.
        """
        relay = self.relays[pick % len(self.relays)] if self.relays else None
        if relay is None:
            return
        before = list(relay.hand)
        told = self._send(relay, verdicts)
        known = {number for number, _ in told} | {number for number, _ in relay.hand}
        behind = [number for number, _ in before if number not in known]
        rest = [number for number, _ in relay.hand][:late]
        groups: dict[str, Any] = {
            verdict: [n for n, said in told if said == verdict] for verdict in ("failed", "refused", "unknown")
        }
        answer = self.outbox.exchange(
            relay.id,
            delivered=[n for n, said in told if said == "delivered"],
            sending=rest + (behind if careless else []),
            limit=limit,
            **groups,
        )
        for number, said in told:
            if answer.finished is None or said != "delivered":
                self.model.excuse(number)
        if answer.finished is None:
            self.relays.remove(relay)
            return
        dead = {number for number, _, _ in self.outbox.letters()}
        for number, said in told:
            if said == "delivered":
                self.model.deliver(number)
            elif number in dead:
                self.model.bury(number)
        relay.hand = [one for one in relay.hand if one[0] in rest]
        if not lost:
            relay.hand += [(event.number, event.lane) for event in answer.events]

    def _send(self, relay: Holder, verdicts: list[str]) -> list[tuple[int, str]]:
        """The receiver gets some of it, in order; behind a failure nothing of the lane is sent."""
        told: list[tuple[int, str]] = []
        stopped: set[int] = set()
        for (number, lane), said in zip(list(relay.hand), verdicts, strict=False):
            if lane in stopped:
                continue
            if said != "refused":
                self._arrives(number)
            if said != "delivered":
                stopped.add(lane)
            told.append((number, said))
        gone = {number for number, _ in told}
        relay.hand = [one for one in relay.hand if one[0] not in gone and one[1] not in stopped]
        return told

    def _arrives(self, number: int) -> None:
        wrong = self.model.arrive(number)
        assert wrong is None, wrong

    @precondition(lambda self: len(self.relays) > 1)
    @rule(pick=picks)
    def kill(self, pick: int) -> None:
        """It has sent the first of its hand and told nobody; the others notice."""
        dead = self.relays.pop(pick % len(self.relays))
        for number, _ in dead.hand[:1]:
            self._arrives(number)
            self.model.excuse(number)
        self._buried(dead)

    @precondition(lambda self: len(self.relays) > 1)
    @rule(pick=picks)
    def freeze(self, pick: int) -> None:
        """It stands still past its lease; later it goes on as a zombie."""
        frozen = self.relays.pop(pick % len(self.relays))
        self._buried(frozen)
        self.zombies.append(frozen)

    def _buried(self, dead: Holder) -> None:
        self.outbox.expire_relay(dead.id)
        self.outbox.make_steady(self.relays[0].id)
        self.outbox.beat(self.relays[0].id)
        for number, _, _ in self.outbox.letters():
            self.model.bury(number)

    @precondition(lambda self: self.zombies)
    @rule(pick=picks)
    def a_zombie_tells_what_it_sent(self, pick: int) -> None:
        zombie = self.zombies.pop(pick % len(self.zombies))
        numbers = [number for number, _ in zombie.hand]
        assert self.outbox.exchange(zombie.id, delivered=numbers).finished is None

    @rule(pick=picks)
    def beat(self, pick: int) -> None:
        if self.relays:
            self.outbox.beat(self.relays[pick % len(self.relays)].id)

    @precondition(lambda self: len(self.relays) > 1)
    @rule(pick=picks)
    def stop(self, pick: int) -> None:
        gone = self.relays.pop(pick % len(self.relays))
        self.outbox.rows("SELECT livewell.release_relay(%s)", gone.id)

    # -- operators --------------------------------------------------------------------------------

    @precondition(lambda self: self.outbox.letters())
    @rule(pick=picks, again=st.booleans())
    def settle_letters(self, pick: int, again: bool) -> None:
        """Redrive or discard one dead letter, while relays have what they have in hand."""
        letters = self.outbox.letters()
        number = letters[pick % len(letters)][0]
        act = "redrive_dead_events" if again else "discard_dead_events"
        assert self.outbox.value(f"SELECT livewell.{act}('shop', %s::bigint[])", [number]) == 1
        (self.model.redrive if again else self.model.discard)(number)

    # -- everybody is well again ------------------------------------------------------------------

    @rule()
    def everything_arrives_in_the_end(self) -> None:
        """What is committed is delivered, but for what is dead or waits behind a parked key."""
        while len(self.relays) > 1:
            self.stop(0)
        if not self.relays:
            self.start()
        [relay] = self.relays
        relay.hand.clear()
        self.outbox.exchange(relay.id, limit=0)
        for _ in range(300):
            self.outbox.beat(relay.id)
            batch = self.outbox.exchange(relay.id, limit=7)
            if not batch.events:
                break
            for number in batch.numbers:
                self._arrives(number)
                self.model.deliver(number)
            self.outbox.exchange(relay.id, delivered=batch.numbers, limit=0)
        missing = {number for number in self.model.due() if not self.model.events[number].settled}
        assert not missing, f"{missing} did not arrive: {self.outbox.blocks()}, aside {self.outbox.aside()}"


def test_the_receiver_gets_what_was_promised(outbox: OutboxSession, queue_dsn: str) -> None:
    """Whatever happens, in whatever order."""
    with ExitStack() as stack:
        producers = [OutboxSession(queue_dsn), OutboxSession(queue_dsn)]
        for one in producers:
            stack.enter_context(one)
        run_state_machine_as_test(
            cast("type[OutboxMachine]", lambda: OutboxMachine(outbox, producers)),  # it only calls it
            settings=settings(
                max_examples=EXAMPLES or 40,
                stateful_step_count=40,
                derandomize=not EXAMPLES,
                print_blob=True,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
