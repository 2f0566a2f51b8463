"""R13, G3, X3, X10: what one bad key, or a handful, does to the others. Nothing.

Seen failing on 0.5.0: five batch calls of 49 good rows and one vanished key opened the breaker; six
bad keys among forty honest ones left every honest key stale for twenty minutes, because half open
the failing key's own retry was the probe; under an open breaker every queue was called stalled.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.queue_sql import LimitedClaim
from tests.support.store_sql import KIND, QUEUE, StoreSession, failed, result, value

TTL_SECONDS = 30
BAD = {"B1": "transient", "B2": "html", "B3": "bad_number", "B4": "bad_text", "B5": "duplicate_row", "B6": "empty"}
HONEST = [f"K{n:02}" for n in range(40)]


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """One type that lives for half a minute, under the limits of a shipped upstream.

    The clock stands still.
    """
    with StoreSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        session.freeze()
        session.limiter(
            "api", rate_calls=300, rate_seconds=60, burst=10, concurrency=10, breaker_failures=10, breaker_in_row=5
        )
        session.rows("UPDATE livewell.data_type SET ttl = '30 seconds'")
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()


class Market:
    """Watched keys, and an upstream that answers for each as it is told to.

    Time goes on two seconds at a time.
    """

    def __init__(self, store: StoreSession, keys: list[str]) -> None:
        self.store = store
        self.keys = keys
        self.viewer = store.open()
        store.subscribe(self.viewer, *keys)
        self.worker = store.register(queues=[QUEUE])
        self.ill: dict[str, str] = {}  # key → reason; "*": every key
        self.calls: list[tuple[str, str]] = []  # key and how it ended, in order

    def step(self) -> None:
        """Dispatch, claim, answer; then two seconds pass."""
        store = self.store
        store.promote()
        store.dispatch()
        answers = []
        for key, claim in store.take(self.worker, 10).items():
            reason = self.ill.get(key) or self.ill.get("*")
            self.calls.append((key, reason or "ok"))
            answers.append(self.answer(claim, key, reason))
        if answers:
            store.store(*answers)
        store.advance(2)

    def answer(self, claim: LimitedClaim, key: str, reason: str | None) -> dict[str, object]:
        if reason is None:
            return value(claim, 1 + len(self.calls), self.store.now(), key)
        if reason == "empty":
            return result(claim, key, outcome="missing")
        return failed(claim, reason, key, blame="data" if reason == "duplicate_row" else "upstream")

    def run(self, seconds: int) -> None:
        for n in range(seconds // 2):
            if n % 100 == 0:
                self.store.heartbeat(self.viewer)
            self.step()

    def oldest(self, keys: list[str]) -> float:
        """How long ago the value of these keys that is the oldest was checked."""
        return float(
            self.store.value(
                "SELECT max(extract(epoch FROM livewell.now() - checked_at))::float8 FROM livewell.ledger WHERE "
                "key = ANY (%s)",
                keys,
            )
        )

    @property
    def breaker(self) -> str:
        return str(self.store.value("SELECT breaker FROM livewell.limiter_credential"))


def test_a_batch_call_that_brought_one_good_value_is_a_good_call(store: StoreSession) -> None:
    """X3: of fifty keys one has vanished, round after round; it fails alone."""
    keys = [f"K{n:02}" for n in range(50)]
    worker = store.register(queues=[QUEUE])
    for turn in range(8):
        store.ask(*keys, call_key="quote#1")
        claims = store.take(worker)
        assert len({claim.call for claim in claims.values()}) == 1
        gone = turn > 0
        answers = [
            result(claim, key, outcome="missing") if gone and key == "K00" else value(claim, turn + 1, store.now(), key)
            for key, claim in claims.items()
        ]
        assert sum(answer.answer == "stored" for answer in store.store(*answers)) == (49 if gone else 50)
        store.rows("DELETE FROM livewell.job WHERE kind = %s", KIND)
        store.advance(20)
    assert store.rows("SELECT breaker, failures_in_row FROM livewell.limiter_credential") == [("closed", 0)]
    assert store.ledger("K00", "reason") == ("empty",)


def test_the_bandwidth_wall_still_speaks_for_the_whole_call(store: StoreSession) -> None:
    """However much came before it."""
    store.ask("A", "B", call_key="quote#1")
    claims = store.take(store.register(queues=[QUEUE]))
    store.store(value(claims["A"], 1, store.now(), "A"), failed(claims["B"], "bandwidth_wall", "B", blame="wall"))
    assert store.rows("SELECT breaker, opened_reason FROM livewell.limiter_credential") == [("open", "bandwidth_wall")]


def test_six_bad_keys_among_forty_leave_the_forty_fresh_for_twenty_minutes(store: StoreSession) -> None:
    """The bad ones come first of all, one after the other.

    No honest key is ever older than its time to live and five seconds.
    """
    market = Market(store, [*BAD, *HONEST])
    market.run(40)
    assert market.oldest(market.keys) <= TTL_SECONDS + 5
    market.ill = dict(BAD)
    worst = 0.0
    for minute in range(20):
        for _ in range(15):
            market.run(4)
            worst = max(worst, market.oldest(HONEST))
        market.ill = {**BAD, "B1": "deadline"} if minute % 2 else dict(BAD)

    assert worst <= TTL_SECONDS + 5
    assert market.breaker == "closed"
    honest = [key for key, ended in market.calls if key in HONEST]
    assert len(honest) >= 40 * 1200 / (TTL_SECONDS + 5)


def test_an_outage_of_the_whole_upstream_opens_the_breaker_and_one_good_probe_closes_it(store: StoreSession) -> None:
    """Ten calls find it out, and the cause is kept; then a call a minute at most."""
    market = Market(store, HONEST)
    market.run(40)
    before = len(market.calls)
    market.ill = {"*": "transient"}
    market.run(50)
    assert market.breaker == "open"
    assert len(market.calls) - before <= 20
    assert store.rows(
        "SELECT opened_at IS NOT NULL, opened_reason, opened_keys >= 5 FROM livewell.limiter_credential"
    ) == [(True, "transient", True)]
    made = len(market.calls)
    market.run(150)
    assert len(market.calls) - made <= 3

    market.ill = {}
    market.run(200)
    assert market.breaker == "closed"
    assert market.oldest(HONEST) <= TTL_SECONDS + 5


def test_a_total_outage_in_which_every_key_has_failed_recovers(store: StoreSession) -> None:
    """Two of the seven stay bad for ever, and they are no reason to wait longer."""
    market = Market(store, HONEST[:7])
    market.run(40)
    market.ill = {"*": "transient"}
    market.run(400)
    assert market.breaker != "closed"
    assert store.value("SELECT count(*) FROM livewell.limiter_failing WHERE failures > 0") == 7

    market.ill = {"K00": "transient", "K01": "transient"}
    market.run(600)
    assert market.breaker == "closed"
    assert market.oldest(HONEST[2:7]) <= TTL_SECONDS + 5


def test_what_waits_for_an_open_breaker_makes_no_queue_stalled(store: StoreSession) -> None:
    """B7: nor does it after the breaker has closed.

    The healthy key is queued although jobs have been ready for a minute.
    """
    market = Market(store, ["K00", "K01"])
    market.run(2)
    store.rows(
        "UPDATE livewell.limiter_credential SET breaker = 'open', opened = 1, open_until = livewell.now() + "
        "interval '60 seconds', failing_until = livewell.now() + interval '75 seconds'"
    )
    store.ask("K00")
    store.rows("INSERT INTO livewell.limiter_failing SELECT 'api', 'K00', '', livewell.now(), livewell.now(), 1, true")
    store.advance(40)
    assert store.value("SELECT stalled FROM livewell.dispatch_room('api', livewell.now(), 100)") == []
    store.advance(21)

    assert store.dispatch()["inserted"] == 1
    assert list(store.take(market.worker, 10)) == ["K01"]
