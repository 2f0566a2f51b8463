"""G2, G6: the budget is predictive, stops the background earlier, and books every claim exactly once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.queue_sql import LimitedClaim, QueueSession


@pytest.fixture
def api(queue: QueueSession) -> QueueSession:
    """A thousand bytes a day, a hundred a call.

    Nothing more from 950 on, and no background from 800.
    """
    queue.freeze()
    queue.limiter(budget_units=1000, budget_unit="bytes", budget_seconds=86400, estimate_units=100)
    queue.declare(limiter="api", attempts=10)
    return queue


def used(api: QueueSession) -> int:
    return int(api.value("SELECT coalesce(sum(units), 0) FROM livewell.limiter_usage"))


def claim(api: QueueSession, calls: int = 100) -> list[LimitedClaim]:
    return api.claim_limited(api.register(), calls)


def test_what_is_about_to_be_fetched_counts(api: QueueSession) -> None:
    """Nine of a hundred fit below 950, and nothing has been used yet."""
    api.enqueue(20, lane=0)
    assert len(claim(api)) == 9
    [waits] = api.ask_limited(api.register())
    assert waits.reason == "budget"


def test_the_background_stops_earlier(api: QueueSession) -> None:
    """At 80 %, while people go on."""
    api.enqueue(20, lane=1)
    assert len(claim(api)) == 8
    api.enqueue(5, lane=0)
    assert len(claim(api)) == 1


def test_measured_use_replaces_the_estimate(api: QueueSession) -> None:
    """Ten bytes instead of a hundred make room, and the next estimate is better.

    The first measurement jumps, later ones weigh a tenth.
    """
    api.enqueue(20, lane=0)
    for one in claim(api):
        api.end(one, used=10)
    assert used(api) == 90
    assert api.value("SELECT units FROM livewell.limiter_estimate") == pytest.approx(10)
    [next_, *_] = claim(api, 1)
    api.end(next_, used=110)
    assert api.value("SELECT units FROM livewell.limiter_estimate") == pytest.approx(20)


def test_a_call_whose_worker_died_is_charged_at_the_estimate(api: QueueSession) -> None:
    """It may have been made (G6)."""
    api.enqueue(1, lane=0)
    dying = api.register()
    api.claim_limited(dying)
    api.expire(dying)
    api.recover(api.steady())
    assert used(api) == 100


def test_a_late_report_books_the_difference_and_only_once(api: QueueSession) -> None:
    """The zombie's finish is fenced, but its bytes were real."""
    api.enqueue(1, lane=0)
    dying = api.register()
    [zombie] = api.claim_limited(dying)
    api.expire(dying)
    api.recover(api.steady())
    for _ in range(2):
        assert api.end(zombie, used=300) != []
    assert used(api) == 300
    [owner] = api.claim_limited(api.register(), empty=True)
    assert api.end(owner, used=50) == []
    assert used(api) == 350


def test_a_report_that_comes_before_the_estimate_stands(api: QueueSession) -> None:
    """The zombie came back as a new worker and was quicker than recovery.

    What was measured is not replaced by a guess.
    """
    api.enqueue(1, lane=0)
    dying = api.register()
    [zombie] = api.claim_limited(dying)
    api.expire(dying)
    assert api.end(replace(zombie, worker=api.register()), used=300) != []
    api.recover(api.steady())
    assert used(api) == 300


@pytest.mark.parametrize("outcome", ["succeeded", "retry", "refused", "cancelled", "released"])
def test_every_end_books_what_was_measured(api: QueueSession, outcome: str) -> None:
    """A failed call cost bytes too."""
    api.enqueue(1, lane=0)
    [one] = claim(api)
    api.end(one, outcome, used=70)
    assert used(api) == 70
    assert api.value("SELECT count(*) FROM livewell.usage_settled") == 1


def test_a_job_finished_without_a_word_is_charged_at_the_estimate(api: QueueSession) -> None:
    """Finished by plain SQL, past everything that measures."""
    api.enqueue(1, lane=0)
    [one] = claim(api)
    assert api.finish(one) == []
    assert used(api) == 100


def test_what_was_never_started_used_nothing(api: QueueSession) -> None:
    """A claim whose answer was lost is handed back."""
    api.enqueue(1, lane=0)
    worker = api.register()
    [one] = api.claim_limited(worker)
    assert api.reconcile(worker, mark=one.fence) == 1
    assert used(api) == 0


def test_a_rolling_budget_comes_back_with_the_hours(api: QueueSession) -> None:
    """An hour's use is forgotten when all of that hour is past."""
    api.enqueue(30, lane=0)
    for one in claim(api):
        api.end(one, used=100)
    [waits] = api.ask_limited(api.register())
    assert waits.reason == "budget"
    assert waits.wait is not None
    assert 86400 - 3600 <= waits.wait <= 86400 + 3600
    api.advance(waits.wait + 1)
    assert len(claim(api)) == 9


def test_a_daily_budget_resets_at_its_time_in_its_zone(queue: QueueSession) -> None:
    """17:30 in New York, not midnight here; usage of the same hour before the reset is past."""
    queue.freeze()
    queue.limiter(
        budget_units=10, budget_unit="calls", budget_resets="17:30", budget_zone="America/New_York", budget_stop=1
    )
    queue.declare(limiter="api")
    queue.enqueue(30, lane=0)
    to_reset = queue.value(
        "SELECT extract(epoch FROM (date_trunc('day', livewell.now() AT TIME ZONE 'America/New_York') + "
        "interval '1 day 17:30')"
        " AT TIME ZONE 'America/New_York' - livewell.now())::float8"
    )
    queue.advance(to_reset - 60)  # a minute before it, tomorrow
    for one in claim(queue):
        queue.end(one)
    [waits] = queue.ask_limited(queue.register())
    assert waits.reason == "budget"
    assert waits.wait == pytest.approx(60, abs=1)
    queue.advance(61)
    assert len(claim(queue)) == 10


def test_a_budget_of_calls_counts_a_shared_call_once(queue: QueueSession) -> None:
    """Three jobs in one call use one."""
    queue.limiter(budget_units=10, budget_unit="calls", budget_seconds=86400)
    queue.declare(limiter="api")
    queue.enqueue(3, kind="quote", lane=0)
    for one in queue.claim_limited(queue.register(), batches={"quote": 10}):
        queue.end(one)
    assert used(queue) == 1


def test_each_credential_has_its_own_budget(queue: QueueSession) -> None:
    """Two keys, twice as much."""
    queue.limiter(budget_units=2, budget_unit="calls", budget_seconds=86400, budget_stop=1, credentials=["one", "two"])
    queue.declare(limiter="api")
    queue.enqueue(10, lane=0)
    worker = queue.register()
    assert sorted(str(c.credential) for _ in range(3) for c in queue.claim_limited(worker)) == [
        "one",
        "one",
        "two",
        "two",
    ]


def test_two_claims_of_one_job_in_one_report_are_both_booked(api: QueueSession) -> None:
    """A worker that lost a job and has it again reports both runs at once.

    The first is fenced, and its bytes were real.
    """
    api.enqueue(1, lane=0)
    worker = api.register()
    [first] = api.claim_limited(worker)
    api.reconcile(worker, mark=first.fence)
    [second] = api.claim_limited(worker)
    results = [
        {
            "id": c.id,
            "fence": c.fence,
            "outcome": "succeeded",
            "queue": c.queue,
            "kind": "task",
            "credential": "",
            "used": n,
        }
        for c, n in ((first, 30), (second, 50))
    ]
    fenced = api.rows("SELECT * FROM livewell.finish_jobs(%s, '{}', '{}', %s::jsonb)", worker, json.dumps(results))
    assert fenced == [(first.id, first.fence)]
    assert used(api) == 80
