"""Random lives of limited queues, on a real database with a virtual clock, compared with the model after every step.

Two halves, so that two test processes may have one each; together they try new lives for
LIVEWELL_MODEL_SECONDS (eight unless told otherwise; `make faults`: twenty minutes), in rounds of a
few, each round with a seed that is printed. LIVEWELL_TEST_SEED repeats one round. Hypothesis then
prints the steps of the smallest failing life. Seen to fail, each within a minute, when a lost job
at its lane's stop ended the claim, when a retry freed no place in its group, when a key's place was
not freed in the limiter's other queues, when a probe's fence was not kept, when calls from before
it opened moved the breaker, when a call counted from its grant alone, when reservations were left
out of the budget, when a late report was booked in full, when two claims of one job were told apart
by id, when a cancelled job was counted as succeeded, when a redrive left its batch's failures as
they were, when promote_held looked only at keys, and when `again` replaced what was held.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from typing import Any, cast

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model import limited_model as model
from tests.model.limited_model import Batch, End, Job, LimitedModel, Limiter, Queue
from tests.support.queue_sql import LimitedClaim, QueueSession

SECONDS = float(os.environ.get("LIVEWELL_MODEL_SECONDS", "8")) / 2
EXAMPLES_PER_ROUND = 5  # a round is not cut short, so a long one would overrun the time on a busy machine

EVERYTHING = """
SELECT 'live', jsonb_agg(jsonb_build_array(id, queue, state, held_by, attempt, lost, fence, worker, cancel_requested, lane, rank / 1000, reserved_units, payload -> 'v', batch_id) ORDER BY id) FROM livewell.job
UNION ALL SELECT 'history', jsonb_agg(jsonb_build_array(id, outcome) ORDER BY id) FROM livewell.job_history
UNION ALL SELECT 'dead', jsonb_agg(jsonb_build_array(id, reason) ORDER BY id) FROM livewell.dead_job
UNION ALL SELECT 'batches', jsonb_agg(jsonb_build_array(id, sealed_at IS NOT NULL, ended_at IS NOT NULL, remaining, succeeded, failed, cancelled) ORDER BY id) FROM livewell.batch
UNION ALL SELECT 'usage', jsonb_build_array(coalesce(sum(units), 0), coalesce(sum(calls), 0), (SELECT coalesce(sum(s.units), 0) FROM livewell.usage_settled s)) FROM livewell.limiter_usage
UNION ALL SELECT 'breaker', jsonb_build_array(breaker, extract(epoch FROM open_until)::bigint, opened, probe_fence) FROM livewell.limiter_credential
"""

picks = st.integers(0, 11)
names = st.sampled_from(["a", "a", "b", "c"])
outcomes = st.sampled_from(["succeeded"] * 3 + ["retry", "retry", "refused", "cancelled", "released"])
ends = st.sampled_from(["ok", "ok", "upstream", "upstream", "data", "ours", "wall", None])
used = st.sampled_from([None, 0, 40, 100, 260])


class LimitedMachine(RuleBasedStateMachine):
    """Queues a and b share a limiter, c has none; a few workers.

    Everything that can happen to a job.
    """

    def __init__(self, queue: QueueSession) -> None:
        super().__init__()
        self.queue = queue
        self.jobs: list[int] = []
        self.claims: list[LimitedClaim] = []  # also those that are long over
        self.grants: list[tuple[int, int, int]] = []  # (at, lane 0, lane 1), never forgotten
        self.payload = 0

    @initialize(
        rate=st.sampled_from([None, 4, 5]),
        budget=st.booleans(),
        breaker=st.booleans(),
        concurrency=st.sampled_from([None, None, 3]),
        per_key=st.sampled_from([None, 1, 2]),
        group_limit=st.sampled_from([None, 1, 2]),
    )
    def limited_queues(
        self,
        *,
        rate: int | None,
        budget: bool,
        breaker: bool,
        concurrency: int | None,
        per_key: int | None,
        group_limit: int | None,
    ) -> None:
        # From midnight: where hours and tens of seconds begin is the same in every run.
        self.queue.rows(
            "UPDATE livewell_test.clock SET ahead = '0', frozen_at = date_trunc('day', "
            "pg_catalog.clock_timestamp(), 'UTC')"
        )
        self.queue.reset()
        now = int(self.queue.value("SELECT extract(epoch FROM livewell.now())"))
        newest = int(self.queue.value("SELECT last_value + 16383 FROM livewell.fence_seq"))
        limiter = Limiter(rate=rate, budget=budget, breaker=breaker, concurrency=concurrency, per_key=per_key)
        queues = {
            "a": Queue(limited=True, group_limit=group_limit),
            "b": Queue(limited=True, concurrency=3),
            "c": Queue(limited=False, concurrency=4, group_limit=2),
        }
        self.model = LimitedModel(now, newest, limiter, queues)
        self._declare_limiter()
        for name, one in queues.items():
            self.queue.declare(name, attempts=3, base=0, cap=0, limiter="api" if one.limited else None)
            self._declare_limits(name)
        self.undertaker = self.queue.register()
        self.model.workers.add(self.undertaker)
        self.queue.rows("SELECT livewell.maintain(0, 0, 0)")  # makes its row
        self.register()
        self.register()

    def _declare_limiter(self) -> None:
        it = self.model.limiter
        limits: dict[str, Any] = {
            "burst": model.BURST,
            "reserve": model.RESERVE,
            "permit_seconds": model.PERMIT,
            "deadline_seconds": model.DEADLINE,
            "estimate_units": model.ESTIMATE,
            "concurrency": it.concurrency,
            "per_key": it.per_key,
        }
        if it.rate is not None:
            limits |= {"rate_calls": it.rate, "rate_seconds": model.WINDOW}
        if it.budget:
            limits |= {"budget_units": 1000, "budget_unit": "bytes", "budget_seconds": model.SPAN}
        if it.breaker:
            limits |= {
                "breaker_failures": model.FAILURES,
                "breaker_share": model.SHARE,
                "breaker_in_row": model.IN_ROW,
                "breaker_seconds": model.BREAKER_SECONDS,
                "open_seconds": model.OPEN,
                "open_seconds_max": model.OPEN_MAX,
                "wall_seconds": model.WALL,
            }
        self.queue.limiter(**limits)

    def _declare_limits(self, name: str) -> None:
        one = self.model.queues[name]
        self.queue.rows(
            "UPDATE livewell.queue SET concurrency = %s, group_limit = %s, lost_max = %s WHERE name = %s",
            one.concurrency,
            one.group_limit,
            model.LOST_MAX,
            name,
        )

    # -- clients ----------------------------------------------------------------------------------

    @rule(
        n=st.integers(1, 3),
        name=names,
        key=st.sampled_from([None, None, "k", "l"]),
        policy=st.sampled_from(["keep", "raise", "replace", "again"]),
        group=st.sampled_from([None, "g", "g", "h"]),
        lane=st.sampled_from([0, 1]),
        priority=st.sampled_from([0, 0, 1, -1]),
        delay=st.sampled_from([0, 0, 0, 10]),
        units=st.sampled_from([None, None, 50, 400]),
        max_attempts=st.integers(1, 3),
        batch=st.none() | picks,
    )
    def enqueue(
        self,
        *,
        n: int,
        name: str,
        key: str | None,
        policy: str,
        group: str | None,
        lane: int,
        priority: int,
        delay: int,
        units: int | None,
        max_attempts: int,
        batch: int | None,
    ) -> None:
        open_batches = [i for i, one in self.model.batches.items() if not one.sealed]
        into = open_batches[batch % len(open_batches)] if open_batches and batch is not None else None
        for job in self.queue.ids(n):
            self.payload += 1
            asked = {
                "id": job, "queue": name, "payload": {"v": self.payload}, "unique_key": key, "policy": policy, "group_key": group, "lane": lane, "priority": priority,
                "delay_seconds": delay, "units": units, "max_attempts": max_attempts, "batch_id": into,
            }  # fmt: skip
            new = Job(
                job, name, 0, 0, "ready", lane=lane, priority=priority, max_attempts=max_attempts, key=key, group=group, batch=into, units=units, payload=self.payload
            )  # fmt: skip
            answer = self.model.enqueue(new, policy, delay)
            assert self.queue.enqueue_given([asked]) == ([] if answer is None else [(job, *answer)])
            if answer is None or answer == ("held", job):
                self.jobs.append(job)

    @precondition(lambda self: self.jobs)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        job = self.jobs[-1 - pick % len(self.jobs)]
        assert self.queue.cancel(job) == self.model.cancel(job)

    @precondition(lambda self: self.model.dead)
    @rule()
    def redrive(self) -> None:
        assert self.queue.redrive() == self.model.redrive()

    @precondition(lambda self: len(self.model.batches) < 4)
    @rule(when=st.sampled_from([None, "done", "succeeded"]))
    def open_batch(self, when: str | None) -> None:
        batch, follow = self.queue.ids(2)
        what = json.dumps({"queue": "b", "kind": "task", "payload": {"v": 0}, "max_attempts": 3}) if when else None
        self.queue.rows(
            "SELECT livewell.create_batch(%s, %s, %s, %s::jsonb)", batch, follow if when else None, when, what
        )
        self.model.batches[batch] = Batch(follow, when)

    @precondition(lambda self: self.model.batches)
    @rule(pick=picks)
    def seal_batch(self, pick: int) -> None:
        batch = sorted(self.model.batches)[pick % len(self.model.batches)]
        assert self.queue.value("SELECT livewell.seal_batch(%s)", batch)
        self.model.seal(batch)

    # -- operators and time -----------------------------------------------------------------------

    @rule(name=names, concurrency=st.sampled_from([None, 1, 4]), group_limit=st.sampled_from([None, 1, 3]))
    def change_queue(self, name: str, concurrency: int | None, group_limit: int | None) -> None:
        one = self.model.queues[name]
        one.concurrency, one.group_limit = concurrency, group_limit
        self._declare_limits(name)

    @rule(concurrency=st.sampled_from([None, 2, 5]), per_key=st.sampled_from([None, 1, 3]))
    def change_limiter(self, concurrency: int | None, per_key: int | None) -> None:
        self.model.limiter.concurrency, self.model.limiter.per_key = concurrency, per_key
        self._declare_limiter()

    @rule(name=names, paused=st.sampled_from([False, False, True]))
    def pause(self, name: str, paused: bool) -> None:
        self.queue.pause(paused=paused, queue=name)
        self.model.queues[name].paused = paused

    @precondition(lambda self: self.model.limiter.rate)
    @rule(limit=st.sampled_from([None, 2, 100]), quiet=st.sampled_from([None, None, 15]))
    def upstream_says(self, limit: int | None, quiet: int | None) -> None:
        self.queue.rows("SELECT livewell.observe_limiter('api', '', %s, NULL, NULL, %s)", limit, quiet)
        it = self.model.limiter
        if limit is not None:
            it.learnt = limit if limit < (it.rate or 0) else None
        if quiet is not None:
            it.quiet_until = max(it.quiet_until, self.model.now + quiet)

    @rule(by=st.sampled_from([1, 2, 5, 13, 13, 61, 3700]))
    def advance(self, by: int) -> None:
        self.queue.advance(by)
        self.model.now += by

    @rule()
    def maintain(self) -> None:
        self._maintained()

    @rule()
    def maintain_until_quiet(self) -> None:
        """A page may end anywhere, so it takes two looks.

        Then nothing is held that nothing holds.
        """
        self._maintained()
        self._maintained()
        for job in self.model.jobs.values():
            if job.held == "k":
                assert self.model.current(job.queue, job.key), f"{job} waits for nobody"
            if job.held == "g" and job.group is not None:
                limit = self.model.group_limit(job.queue)
                assert limit is not None, f"{job} is held in a queue without limits"
                assert self.model.active(job.queue, job.group) >= limit, f"{job} is held although its group has room"

    def _maintained(self) -> None:
        # Whoever lives has renewed all the while.
        self.queue.rows(
            "UPDATE livewell.worker SET renewed_at = livewell.now(), steady_since = livewell.now() - lease, "
            "expires_at = livewell.now() + lease WHERE id = ANY (%s)",
            sorted(self.model.workers),
        )
        [(ran, promoted, _, lost, _)] = self.queue.rows("SELECT * FROM livewell.maintain(%s, 0, 0)", self.undertaker)
        assert (ran, (promoted, lost)) == (True, self.model.maintain())

    # -- workers ----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.workers) < 4)
    @rule()
    def register(self) -> None:
        self.model.workers.add(self.queue.register())

    @rule(pick=picks)
    def worker_dies(self, pick: int) -> None:
        """What it holds is found by the next upkeep."""
        mortal = sorted(self.model.workers - {self.undertaker})
        if mortal:
            worker = mortal[pick % len(mortal)]
            self.queue.expire(worker)
            # Buried only when somebody looks, and until then it may claim and finish; let somebody
            # look.
            self.model.workers.discard(worker)
            self._maintained()

    @rule(pick=picks, name=names, calls=st.integers(1, 4))
    def claim(self, pick: int, name: str, calls: int) -> None:
        workers = sorted(self.model.workers)
        self._claimed(workers[pick % len(workers)], name, calls)

    @rule(pick=picks, name=names, lane=st.sampled_from([0, 1]))
    def new_work_is_claimed(self, pick: int, name: str, lane: int) -> None:
        """So that most lives have something to lose."""
        self.enqueue(
            n=2, name=name, key=None, policy="keep", group="g" if pick % 2 else None, lane=lane, priority=0, delay=0, units=None, max_attempts=2, batch=pick
        )  # fmt: skip
        self.claim(pick=pick, name=name, calls=3)

    # -- ways into the corners: steps that chance would rarely put in a row -----------------------

    def _new(self, name: str, lane: int, n: int = 1) -> None:
        self.enqueue(
            n=n, name=name, key=None, policy="keep", group=None, lane=lane, priority=0, delay=0, units=None, max_attempts=2, batch=None
        )  # fmt: skip

    @rule(pick=picks, lane=st.sampled_from([0, 0, 1]), ended=st.sampled_from(["ok", "ok", "upstream"]))
    def overload(self, pick: int, lane: int, ended: str) -> None:
        """One call a second is wanted for longer than a window.

        Whatever is let through ends at once.
        """
        for _ in range(14):
            self._new("a", lane)
            before = len(self.claims)
            self.claim(pick=pick, name="a", calls=1)
            if len(self.claims) > before:
                self.finish(some=[(0, "succeeded" if ended == "ok" else "refused", 0, 40, ended)])
            self.advance(by=1)

    @precondition(lambda self: self.model.limiter.breaker)
    @rule(pick=picks, ended=st.sampled_from(["ok", "data", "upstream", "ours", None]))
    def upstream_fails_and_is_probed(self, pick: int, ended: str | None) -> None:
        """Two failures open the breaker.

        After its time one call goes, the next does not, and the first one's end decides. Calls from
        before report their failure last.
        """
        self._new("a", 0, n=2)
        older = len(self.claims)
        self.claim(pick=pick, name="a", calls=2)
        old = range(older, len(self.claims))
        for _ in range(2):
            self._new("b", 0)
            before = len(self.claims)
            self.claim(pick=pick, name="b", calls=1)
            if len(self.claims) > before:
                self.finish(some=[(0, "retry", 0, 40, "upstream")])
        until = self.model.limiter.open_until
        if until is not None and until >= self.model.now:
            self.advance(by=until - self.model.now + 1)
        before = len(self.claims)
        self.new_work_is_claimed(pick=pick, name="b", lane=0)
        probed = len(self.claims) > before
        self.new_work_is_claimed(pick=pick, name="a", lane=0)
        if probed:
            self.finish(some=[(0, "retry", 0, 40, ended)])
        for place in old:
            self.finish(some=[(len(self.claims) - 1 - place, "retry", 0, 40, "upstream")])

    @rule(pick=picks, lane=st.sampled_from([0, 1]))
    def a_job_is_lost(self, pick: int, lane: int) -> None:
        """Its worker dies, and everybody who is empty meets it first from now on."""
        self._new("a", lane)
        self.claim(pick=pick, name="a", calls=1)
        self.worker_dies(pick=pick)

    @rule(pick=picks)
    def one_job_is_reported_twice(self, pick: int) -> None:
        """Claimed, handed back and claimed again by the same worker, which then reports all it ever had of late."""
        self._new("a", 0)
        self.claim(pick=pick, name="a", calls=1)
        self.reconcile(pick=pick)
        self.claim(pick=pick, name="a", calls=1)
        if self.claims:
            self.finish(some=[(i, "succeeded", 0, 40, "ok") for i in range(3)])

    def _claimed(self, worker: int, name: str, calls: int) -> None:
        empty = not [job for job in self.model.jobs.values() if job.worker == worker]
        expected = self.model.claim(worker, name, calls, empty=empty)
        claims = self.queue.claim_limited(worker, calls, empty=empty, queue=name)
        assert [claim.id for claim in claims] == expected
        if claims:
            self.model.claimed(worker, name, [(claim.id, claim.fence) for claim in claims])
            self.claims += claims
            self._limits_hold(name, claims)

    def _limits_hold(self, name: str, claims: list[LimitedClaim]) -> None:
        """Said once more without the model's arithmetic.

        Whoever was just let in is within every limit.
        """
        world, it, queue = self.model, self.model.limiter, self.model.queues[name]
        assert queue.concurrency is None or len(world.running(name)) <= queue.concurrency
        for claim in claims:
            group = world.jobs[claim.id].group
            if group is not None:
                assert queue.group_limit is None or len(world.running(name, group=group)) <= queue.group_limit
                if queue.limited and it.per_key is not None:
                    assert len(world.running(*world.limited(), group=group)) <= it.per_key
        if not queue.limited:
            return
        assert it.concurrency is None or len(world.running(*world.limited())) <= it.concurrency
        background = sum(world.jobs[claim.id].lane for claim in claims)
        self.grants.append((world.now, len(claims) - background, background))
        if it.rate is not None:
            recent = [(n0, n1) for at, n0, n1 in self.grants if at > world.now - model.WINDOW]
            assert sum(n0 + n1 for n0, n1 in recent) <= it.rate
            assert sum(n1 for _, n1 in recent) <= it.rate * (1 - model.RESERVE)
        if it.budget:
            stop = model.BACKGROUND_STOP if background else model.STOP
            assert world.used() + world.reserved() <= stop
        assert it.state == "closed" or len(claims) == 1

    @precondition(lambda self: self.claims)
    @rule(some=st.lists(st.tuples(picks, outcomes, st.sampled_from([0, 0, 10]), used, ends), min_size=1, max_size=3))
    def finish(self, some: list[tuple[int, str, int, int | None, str | None]]) -> None:
        """Each worker sends its own.

        Some of them are zombies, whose bytes are booked all the same.
        """
        chosen = {self.claims[-1 - pick % len(self.claims)]: details for pick, *details in some}
        for worker in {claim.worker for claim in chosen}:
            mine = [
                (claim, End(claim.id, claim.fence, cast("str", outcome), cast("int", delay), u, e))
                for claim, (outcome, delay, u, e) in cast("dict[LimitedClaim, Any]", chosen).items()
                if claim.worker == worker
            ]
            others = [
                {"id": e.job, "fence": e.fence, "outcome": e.outcome, "delay_seconds": e.delay, "used": e.used, "ended": e.ended, "queue": c.queue, "kind": "task",
                 "credential": c.credential}
                for c, e in mine
            ]  # fmt: skip
            owned = [end for _, end in mine if self.model.owns(worker, end.job, end.fence)]
            late = [(claim, end) for claim, end in mine if end not in owned]
            fenced = self.queue.rows(
                "SELECT * FROM livewell.finish_jobs(%s, '{}', '{}', %s::jsonb)", worker, json.dumps(others)
            )
            assert sorted(fenced) == sorted((end.job, end.fence) for _, end in late)
            self.model.settle(sorted(owned, key=lambda end: end.job))
            self.model.charge([
                (claim.queue, end.fence, end.used, True, None, "") for claim, end in late if end.used is not None
            ])  # fmt: skip

    @precondition(lambda self: self.claims)
    @rule(pick=picks)
    def finish_without_a_word(self, pick: int) -> None:
        """By plain SQL: charged as it was reserved."""
        claim = self.claims[-1 - pick % len(self.claims)]
        owned = self.model.owns(claim.worker, claim.id, claim.fence)
        assert self.queue.finish(claim) == ([] if owned else [(claim.id, claim.fence)])
        if owned:
            self.model.settle([End(claim.id, claim.fence, "succeeded")])

    @rule(pick=picks)
    def reconcile(self, pick: int) -> None:
        """A worker that knows of nothing hands all back: nothing was used."""
        workers = sorted(self.model.workers)
        worker = workers[pick % len(workers)]
        unknown = [End(j.id, j.fence, "released", used=0) for j in self.model.jobs.values() if j.worker == worker]
        assert self.queue.reconcile(worker, mark=self.queue.mark()) == len(unknown)
        self.model.settle(sorted(unknown, key=lambda end: end.job))

    # -- what must be true after every step -------------------------------------------------------

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        """In one round trip: it is asked after every step."""
        world, it = self.model, self.model.limiter
        rows = {kind: found or [] for kind, found in self.queue.rows(EVERYTHING)}
        assert rows["live"] == sorted(
            [j.id, j.queue, j.state, j.held, j.attempt, j.lost, j.fence, j.worker, j.cancel, j.lane, j.rank, j.reserved, j.payload, j.batch]
            for j in world.jobs.values()
        )  # fmt: skip
        assert rows["history"] == sorted([job, outcome] for job, outcome in world.history.items())
        assert rows["dead"] == sorted([job, reason] for job, (_, reason) in world.dead.items())
        assert rows["batches"] == sorted(
            [i, b.sealed, b.ended, world.live_in(i) if b.sealed else None, b.succeeded, b.failed, b.cancelled]
            for i, b in world.batches.items()
        )
        # Booked exactly once per fence: what the fences say is what the hours say.
        assert rows["usage"] == [sum(it.settled.values()), len(it.settled), sum(it.settled.values())]
        assert rows["breaker"] == [it.state, it.open_until, it.opened, it.probe]

    @invariant()
    def every_job_is_in_one_place(self) -> None:
        """Of those that were accepted; a follow-up is one if its batch has ended."""
        world = self.model
        follows = [batch.follow for batch in world.batches.values() if batch.ended and batch.when]
        places = [*world.jobs, *world.history, *world.dead]
        assert sorted(places) == sorted([*self.jobs, *follows])


@pytest.mark.parametrize("half", ["first", "second"])
def test_limited_queues_do_what_the_model_does(queue: QueueSession, half: str) -> None:
    """Whatever happens, in whatever order."""
    given = os.environ.get("LIVEWELL_TEST_SEED")
    until = time.monotonic() + SECONDS
    rounds = 0
    while rounds == 0 or (given is None and time.monotonic() < until):
        seed = int(given) if given is not None else secrets.randbelow(2**32)
        print(f"limited model, {half} half: LIVEWELL_TEST_SEED={seed}")

        def machine() -> LimitedMachine:
            return LimitedMachine(queue)

        run_state_machine_as_test(
            cast("type[LimitedMachine]", hypothesis.seed(seed)(machine)),  # it only calls it
            settings=settings(
                max_examples=EXAMPLES_PER_ROUND,
                stateful_step_count=50,
                phases=[Phase.generate, Phase.shrink],
                print_blob=True,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        rounds += 1
    print(f"limited model, {half} half: {rounds * EXAMPLES_PER_ROUND} lives")
