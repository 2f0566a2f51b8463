"""What limited queues should do, in plain Python.

Groups, keys, batches and one limiter with rate, budget, breaker and concurrency.

Time is whole seconds since 1970, because usage is kept by the hour and calls by ten seconds. Ranks
are seconds too. What waits is found by looking at everything; the database is compared with this
after every step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

LOST_MAX = 2
FENCES = 16384
WINDOW, PERMIT, DEADLINE, BURST, RESERVE = 10, 1, 3, 3, 0.5  # a thousandth of the window divides a second
STOP, BACKGROUND_STOP, ESTIMATE, SPAN = 950, 800, 100, 3600  # of a budget of 1000 in an hour
FAILURES, SHARE, IN_ROW, BREAKER_SECONDS = 3, 0.5, 2, 60
OPEN, OPEN_MAX, WALL = 20, 60, 300
FIRST = 15  # seconds that keys that are not failing have to themselves


@dataclass(slots=True)
class Job:
    """One live job. units: what it was said to use; reserved: what it reserves while it runs."""

    id: int
    queue: str
    run_at: int
    rank: int
    state: str
    lane: int = 1
    priority: int = 0
    max_attempts: int = 3
    key: str | None = None
    group: str | None = None
    batch: int | None = None
    units: int | None = None
    reserved: int | None = None
    payload: int = 0
    held: str | None = None
    attempt: int = 0
    lost: int = 0
    fence: int = 0
    worker: int | None = None
    cancel: bool = False

    @property
    def order(self) -> tuple[int, int, int]:
        return self.lane, self.rank, self.id

    @property
    def subject(self) -> str:
        """What a breaker takes its failures for."""
        return self.group or self.key or str(self.id)


@dataclass(slots=True)
class Queue:
    """One queue and its limits."""

    limited: bool  # by the one limiter
    concurrency: int | None = None
    group_limit: int | None = None
    paused: bool = False


@dataclass(slots=True)
class Batch:
    """One batch; what remains is counted, not kept."""

    follow: int
    when: str | None
    sealed: bool = False
    ended: bool = False
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(slots=True)
class Limiter:
    """The limits, and all that is remembered."""

    rate: int | None = None
    budget: bool = False
    breaker: bool = False
    concurrency: int | None = None
    per_key: int | None = None
    flying: dict[int, int] = field(default_factory=dict)  # fence → when it has surely arrived
    arrived: list[float] = field(default_factory=list)  # the same of calls that have ended
    paced_to: float = 0
    quiet_until: int = 0
    learnt: int | None = None
    settled: dict[int, int] = field(default_factory=dict)  # fence → units
    usage: Counter[int] = field(default_factory=Counter)  # by the hour
    estimate: float | None = None
    state: str = "closed"
    open_until: int | None = None
    opened: int = 0
    opened_fence: int = 0
    probe: int | None = None
    in_row: int = 0
    failing: dict[str, int] = field(default_factory=dict)  # key → failures in a row; 0: good again
    failed: dict[str, int] = field(default_factory=dict)  # key → when it last failed
    turned: dict[str, int] = field(default_factory=dict)  # key → when it last turned from good to failing
    failing_until: int = 0
    calls: dict[int, tuple[int, int]] = field(default_factory=dict)  # ten seconds → calls, failures


@dataclass(frozen=True, slots=True)
class Room:
    """What the limiter allows now: calls and units, for lane 0 and lane 1."""

    calls: tuple[int, int]
    units: tuple[float, float] = (math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class End:
    """How one run ended."""

    job: int
    fence: int
    outcome: str
    delay: int = 0
    used: int | None = None
    ended: str | None = None


@dataclass(slots=True)
class LimitedModel:
    """All queues under one limiter, or none."""

    now: int
    newest: int  # fence
    limiter: Limiter
    queues: dict[str, Queue]
    jobs: dict[int, Job] = field(default_factory=dict)
    workers: set[int] = field(default_factory=set)
    history: dict[int, str] = field(default_factory=dict)
    dead: dict[int, tuple[Job, str]] = field(default_factory=dict)
    batches: dict[int, Batch] = field(default_factory=dict)
    last_key: tuple[str, str] = ("", "")  # where upkeep last looked

    # -- looking ----------------------------------------------------------------------------------

    def current(self, queue: str, key: str | None) -> Job | None:
        """Whoever has the key and is not held behind it."""
        found = [j for j in self.jobs.values() if key and (j.queue, j.key) == (queue, key) and j.held != "k"]
        assert len(found) <= 1, f"key {key}: {found}"
        return found[0] if found else None

    def behind(self, queue: str, key: str | None) -> Job | None:
        """Whoever is held behind the key."""
        found = [j for j in self.jobs.values() if key and (j.queue, j.key) == (queue, key) and j.held == "k"]
        assert len(found) <= 1, f"key {key}: {found}"
        return found[0] if found else None

    def running(self, *queues: str, group: str | None = None) -> list[Job]:
        return [
            j
            for j in self.jobs.values()
            if j.state == "running" and j.queue in queues and (group is None or j.group == group)
        ]

    def limited(self) -> list[str]:
        return [name for name, queue in self.queues.items() if queue.limited]

    def group_limit(self, queue: str) -> int | None:
        """What one group may have ready or running, as far as one queue can tell."""
        one = self.queues[queue]
        limits = [one.group_limit, self.limiter.per_key if one.limited else None]
        return min((n for n in limits if n is not None), default=None)

    def active(self, queue: str, group: str) -> int:
        return sum((j.queue, j.group) == (queue, group) and j.state in ("ready", "running") for j in self.jobs.values())

    def held_in(self, queue: str, group: str) -> list[Job]:
        return sorted(
            (j for j in self.jobs.values() if (j.queue, j.group, j.held) == (queue, group, "g")), key=lambda j: j.order
        )

    def live_in(self, batch: int) -> int:
        return sum(j.batch == batch for j in self.jobs.values())

    def used(self) -> int:
        """Units that count against the budget now: whole hours, and one more."""
        since = self.now // 3600 * 3600 - SPAN
        return sum(n for hour, n in self.limiter.usage.items() if hour >= since)

    def reserved(self) -> int:
        return sum(j.reserved or 0 for j in self.running(*self.limited()))

    # -- clients ----------------------------------------------------------------------------------

    def enqueue(self, new: Job, policy: str, delay: int) -> tuple[str, int] | None:
        """None if it was simply inserted, else the answer."""
        new.run_at = self.now + delay
        new.rank = new.run_at - 60 * new.priority
        now = self.current(new.queue, new.key)
        if now is not None:
            return self._merge(new, now, policy)
        limit = self.group_limit(new.queue)
        if delay:
            new.state = "delayed"
        elif limit is not None and new.group is not None and self.active(new.queue, new.group) >= limit:
            new.state, new.held = "held", "g"
        else:
            new.state = "ready"
        self.jobs[new.id] = new
        return None

    def _merge(self, new: Job, now: Job, policy: str) -> tuple[str, int]:
        if policy == "keep":
            return "merged", now.id
        if policy == "raise":
            if now.state != "running" and (now.lane > new.lane or now.rank > new.rank):
                now.priority = max(now.priority, new.priority)
                now.lane, now.rank = min(now.lane, new.lane), min(now.rank, new.rank)
            return "merged", now.id
        if policy == "replace" and now.state != "running":
            self._replace(now, new)
            return "merged", now.id
        held = self.behind(new.queue, new.key)
        if held is None:
            new.state, new.held = "held", "k"
            self.jobs[new.id] = new
            return "held", new.id
        if policy == "replace":
            self._replace(held, new)
            return "held", held.id
        return "dropped", held.id

    def _replace(self, old: Job, new: Job) -> None:
        old.payload, old.lane, old.rank = new.payload, min(old.lane, new.lane), min(old.rank, new.rank)

    def cancel(self, job: int) -> str:
        if job not in self.jobs:
            return "finished"
        if self.jobs[job].state == "running":
            self.jobs[job].cancel = True
            return "requested"
        self.settle([End(job, 0, "cancelled")])
        return "cancelled"

    def redrive(self) -> tuple[int, int]:
        """All of them, in the order of their keys."""
        picked = sorted(self.dead, key=lambda i: (self.dead[i][0].queue, self.dead[i][0].key or "\uffff", i))
        went = 0
        for job in picked:
            old = self.dead[job][0]
            if self.current(old.queue, old.key) is not None:
                continue
            batch = old.batch
            if batch is not None:
                if self.batches[batch].ended:
                    batch = None
                else:
                    self.batches[batch].failed -= 1
            self.jobs[job] = replace(
                old, state="ready", held=None, attempt=0, lost=0, fence=0, worker=None, reserved=None, cancel=False, batch=batch,
                run_at=self.now, rank=self.now - 60 * old.priority,
            )  # fmt: skip
            del self.dead[job]
            went += 1
        return went, len(picked) - went

    def seal(self, batch: int) -> None:
        self.batches[batch].sealed = True
        self._end_batches([batch])

    # -- claims -----------------------------------------------------------------------------------

    def room(self) -> Room:
        """What the limiter allows now."""
        it, nothing = self.limiter, Room((0, 0))
        if (it.open_until or 0) > self.now or it.quiet_until > self.now:
            return nothing
        probing = it.state != "closed"
        if probing and any(j.fence == it.probe for j in self.running(*self.limited())):
            return nothing
        calls = background = 1_000_000
        units = (math.inf, math.inf)
        if it.rate is not None:
            rate = min(it.rate, it.learnt or it.rate)
            spent = sum(at > self.now - WINDOW for at in [*it.flying.values(), *it.arrived])
            ahead = max(it.paced_to - self.now, 0) * rate / WINDOW
            calls = max(min(rate - spent, math.floor(min(BURST, rate) - ahead + 1e-6)), 0)
            background = max(min(math.floor(rate * (1 - RESERVE)) - spent, calls), 0)
        if it.budget:
            left = [max(stop - self.used() - self.reserved(), 0) for stop in (STOP, BACKGROUND_STOP)]
            units = (left[0], left[1])
            least = max(min(ESTIMATE, math.ceil(it.estimate) if it.estimate is not None else ESTIMATE), 1)
            calls = min(calls, left[0] // least)
            background = min(background, left[1] // least, calls)
        most = 1 if probing else 1_000_000
        return Room((min(calls, most), min(background, most)), units)

    def claim(self, worker: int, name: str, calls: int, *, empty: bool) -> list[int]:
        """Which jobs this worker gets, in order.

        Whoever of a full group is met on the way is held.
        """
        queue = self.queues[name]
        ready = sorted((j for j in self.jobs.values() if (j.queue, j.state) == (name, "ready")), key=lambda j: j.order)
        if worker not in self.workers or queue.paused or not ready:
            return []
        most = calls
        if queue.concurrency is not None:
            most = min(most, queue.concurrency - len(self.running(name)))
        if queue.limited and self.limiter.concurrency is not None:
            most = min(most, self.limiter.concurrency - len(self.running(*self.limited())))
        room = self.room() if queue.limited else Room((most, most))
        rooms = [min(most, n) for n in room.calls]
        if rooms[0] <= 0:
            return []
        if queue.limited and self.limiter.state != "closed":
            return self._probe(ready, rooms, room.units, empty=empty)
        suspects = [j for j in ready if j.lost][:1]
        if empty and suspects:
            taken = self._take(suspects, rooms, room.units)
            if taken:
                return taken
        return self._take([j for j in ready if not j.lost], rooms, room.units)

    def _probe(
        self, ready: Sequence[Job], rooms: Sequence[int], units: tuple[float, float], *, empty: bool
    ) -> list[int]:
        """Half open: a key that is not failing.

        If there is none, and their time has come, the one that failed least, and longest ago.
        """
        it, taken = self.limiter, list[int]()
        for turn in range(5):
            ready = [j for j in ready if j.state == "ready"]
            good = [j for j in ready if not j.lost and not it.failing.get(j.subject, 0)]
            bad = [j for j in ready if not j.lost or (empty and turn == 0)] if it.failing_until <= self.now else []
            bad.sort(key=lambda j: (it.failing.get(j.subject, 0), it.failed.get(j.subject, 0), j.order))
            chosen = good or bad[:1]
            taken = self._take(chosen, rooms, units)
            held = any(j.state == "held" for j in chosen)
            if taken or not chosen or not (held or (empty and turn == 0)):
                break
        return taken

    def _take(self, candidates: Sequence[Job], rooms: Sequence[int], units: tuple[float, float]) -> list[int]:
        taken: list[int] = []
        left = list(units)
        for job in candidates:
            if len(taken) >= rooms[0]:
                break
            if job.group is not None and not self._group_has_room(job.queue, job.group, taken):
                job.state, job.held = "held", "g"
                continue
            unit = self._units(job)
            if (unit or 0) > left[job.lane] or len(taken) >= rooms[job.lane]:
                continue
            taken.append(job.id)
            left = [n - (unit or 0) for n in left]
        return taken

    def _units(self, job: Job) -> int | None:
        """What it is expected to use."""
        if job.units is not None or not (self.queues[job.queue].limited and self.limiter.budget):
            return job.units
        return ESTIMATE if self.limiter.estimate is None else math.ceil(self.limiter.estimate)

    def _group_has_room(self, queue: str, group: str, taken: Sequence[int]) -> bool:
        one = self.queues[queue]
        more = sum(self.jobs[i].group == group for i in taken)
        if one.group_limit is not None and len(self.running(queue, group=group)) + more >= one.group_limit:
            return False
        per_key = self.limiter.per_key if one.limited else None
        return per_key is None or len(self.running(*self.limited(), group=group)) + more < per_key

    def claimed(self, worker: int, name: str, got: Sequence[tuple[int, int]]) -> None:
        """Write down what was claimed, under these fences."""
        for job, fence in got:
            one = self.jobs[job]
            budgeted = self.queues[name].limited and self.limiter.budget
            one.reserved = self._units(one) if budgeted else None
            one.state, one.worker, one.fence, one.attempt = "running", worker, fence, one.attempt + 1
        self.newest = got[0][1] - 1 + FENCES - 1
        it = self.limiter
        if self.queues[name].limited:
            if it.rate is not None:
                it.flying |= {fence: self.now + PERMIT + DEADLINE for _, fence in got}
                it.paced_to = max(it.paced_to, self.now) + len(got) * WINDOW / min(it.rate, it.learnt or it.rate)
            if it.state != "closed":
                it.state, it.probe = "half_open", got[0][1]

    def owns(self, worker: int, job: int, fence: int) -> bool:
        one = self.jobs.get(job)
        return one is not None and (one.worker, one.fence) == (worker, fence)

    # -- ends -------------------------------------------------------------------------------------

    def settle(self, ends: Sequence[End]) -> None:
        """Where outcomes lead, all in one statement."""
        jobs = [self.jobs[end.job] for end in ends]
        self.charge([
            (j.queue, j.fence, j.reserved if e.used is None else e.used, e.used is not None, e.ended, j.subject)
            for j, e in zip(jobs, ends, strict=True) if j.state == "running"
        ])  # fmt: skip
        gone: list[tuple[Job, str]] = []
        freed: list[tuple[str, str | None, str | None]] = []
        for job, end in zip(jobs, ends, strict=True):
            fate = self._fate(job, end.outcome)
            if fate != "again":
                gone.append((job, fate))
                continue
            if job.state == "running":
                freed.append((job.queue, None, job.group))
            job.state, job.run_at = ("delayed" if end.delay else "ready"), self.now + end.delay
            job.rank, job.worker, job.reserved = job.run_at - 60 * job.priority, None, None
            job.attempt -= end.outcome in ("released", "lost")
            job.lost += end.outcome == "lost"
        self._end(gone)
        self._release(freed)

    def _fate(self, job: Job, outcome: str) -> str:
        if outcome == "succeeded":
            return outcome
        if outcome == "cancelled" or (job.cancel and outcome != "refused"):
            return "cancelled"
        if outcome == "refused":
            return "refused"
        if outcome == "retry" and job.attempt >= job.max_attempts:
            return "attempts"
        return "lost" if outcome == "lost" and job.lost + 1 >= LOST_MAX else "again"

    def _end(self, gone: Sequence[tuple[Job, str]]) -> None:
        for job, fate in gone:
            del self.jobs[job.id]
            if fate in ("succeeded", "cancelled"):
                self.history[job.id] = fate
            else:
                self.dead[job.id] = (job, fate)
        self._release(
            (j.queue, j.key if j.held != "k" else None, j.group if j.state in ("ready", "running") else None)
            for j, _ in gone
        )
        touched = []
        for job, fate in gone:
            if job.batch is not None:
                batch = self.batches[job.batch]
                batch.succeeded += fate == "succeeded"
                batch.cancelled += fate == "cancelled"
                batch.failed += fate not in ("succeeded", "cancelled")
                touched.append(job.batch)
        self._end_batches(touched)

    def _end_batches(self, ids: Iterable[int]) -> None:
        for i in sorted(set(ids)):
            batch = self.batches[i]
            whole = batch.failed + batch.cancelled == 0
            if batch.sealed and not batch.ended and not self.live_in(i) and (batch.when != "succeeded" or whole):
                batch.ended = True
                if batch.when:
                    assert batch.follow not in self.jobs | self.history | self.dead, "followed twice"
                    self.jobs[batch.follow] = Job(batch.follow, "b", self.now, self.now, "ready")

    def _release(self, left: Iterable[tuple[str, str | None, str | None]]) -> int:
        """(queue, key, group) of each job that left: let go what waited for it."""
        left = list(left)
        n = 0
        for queue, key in {(queue, key) for queue, key, _ in left}:
            held = self.behind(queue, key)
            if held is not None and self.current(queue, key) is None:
                held.held, held.state = None, "delayed" if held.run_at > self.now else "ready"
                n += 1
        places: Counter[tuple[str, str]] = Counter()
        for queue, _, group in left:
            if group is not None:
                shared = self.queues[queue].limited and self.limiter.per_key is not None
                for name in self.limited() if shared else [queue]:
                    places[name, group] += 1
        for (queue, group), free in places.items():
            for job in self.held_in(queue, group)[:free]:
                job.held, job.state = None, "ready"
                n += 1
        return n

    # -- upkeep -----------------------------------------------------------------------------------

    def maintain(self) -> tuple[int, int]:
        """(promoted, lost)."""
        n = 0
        for job in self.jobs.values():
            if job.state == "delayed" and job.run_at <= self.now:
                job.state, job.rank = "ready", job.run_at - 60 * job.priority
                n += 1
        keys = sorted((j.queue, j.key or "") for j in self.jobs.values() if j.held == "k")
        page = [key for key in keys if key > self.last_key]
        self.last_key = page[-1] if page else ("", "")
        n += self._release((queue, key, None) for queue, key in page)
        for queue, group in sorted({(j.queue, j.group) for j in self.jobs.values() if j.group is not None}):
            if self.held_in(queue, group):
                limit = self.group_limit(queue)
                free = 1000 if limit is None else limit - self.active(queue, group)
                n += self._release([(queue, None, group)] * max(free, 0))
        lost = [End(j.id, j.fence, "lost") for j in self.jobs.values() if j.worker and j.worker not in self.workers]
        self.settle(lost)
        return n, len(lost)

    # -- the limiter's books ----------------------------------------------------------------------

    def charge(self, runs: Sequence[tuple[str, int, int | None, bool, str | None, str]]) -> None:
        """(queue, fence, units, measured, ended, key) of each run."""
        runs = sorted((run for run in runs if self.queues[run[0]].limited), key=lambda run: run[1])
        it = self.limiter
        if not runs:
            return
        for _, fence, units, measured, ended, _ in runs:
            if fence in it.flying:
                answered = ended in ("ok", "data", "wall") or (ended == "ours" and measured and units == 0)
                it.arrived.append(min(it.flying.pop(fence), self.now if answered else math.inf))
            if not measured and fence in it.settled:
                continue  # a guess never replaces what is already charged
            it.usage[self.now // 3600 * 3600] += (units or 0) - it.settled.get(fence, 0)
            it.settled[fence] = units or 0
        seen = [units for _, _, units, measured, _, _ in runs if measured and units]
        if seen and it.budget:
            mean = sum(seen) / len(seen)
            it.estimate = mean if it.estimate is None else 0.9 * it.estimate + 0.1 * mean
        ends = [(fence, ended, key) for _, fence, _, _, ended, key in runs if ended is not None]
        if ends and it.breaker:
            self._book_calls(self._mark(ends))

    def _mark(self, ends: Sequence[tuple[int, str, str]]) -> list[tuple[int, str]]:
        """A key that goes on failing says nothing new."""
        it = self.limiter
        for key in {key for _, ended, key in ends if ended == "ok"} & set(it.failing):
            it.failing[key] = 0
        news = set()
        for key in {key for _, ended, key in ends if ended == "upstream"}:
            if not it.failing.get(key, 0):
                it.turned[key] = self.now
                news.add(min(fence for fence, ended, other in ends if (ended, other) == ("upstream", key)))
            it.failing[key], it.failed[key] = it.failing.get(key, 0) + 1, self.now
        return [(fence, "known" if ended == "upstream" and fence not in news else ended) for fence, ended, _ in ends]

    def _book_calls(self, ends: Sequence[tuple[int, str]]) -> None:
        it = self.limiter
        if it.state != "closed":
            self._probed(dict(ends).get(it.probe or 0))
            return
        ends = [(fence, ended) for fence, ended in ends if fence > it.opened_fence and ended not in ("ours", "known")]
        if not ends:
            return
        for _, ended in ends:
            it.in_row = 0 if ended in ("ok", "data") else it.in_row + 1
        failed = sum(ended in ("upstream", "wall") for _, ended in ends)
        calls, failures = it.calls.get(self.now // 10 * 10, (0, 0))
        it.calls[self.now // 10 * 10] = calls + len(ends), failures + failed
        if not failed:
            return
        recent = [n for since, n in it.calls.items() if since > self.now - BREAKER_SECONDS]
        calls, failures = sum(n for n, _ in recent), sum(n for _, n in recent)
        wall = any(ended == "wall" for _, ended in ends)
        keys = sum(at > self.now - BREAKER_SECONDS for at in it.turned.values())
        many = failures >= FAILURES and failures >= SHARE * calls and keys >= FAILURES
        if wall or it.in_row >= IN_ROW or many:
            self._open(WALL if wall else OPEN, 1)

    def _probed(self, ended: str | None) -> None:
        it = self.limiter
        if ended in ("ok", "data"):
            it.state, it.open_until, it.probe, it.opened, it.in_row = "closed", None, None, 0, 0
            it.opened_fence, it.failing_until = self.newest, 0
            it.calls.clear()
        elif ended in ("upstream", "wall"):
            self._open(WALL if ended == "wall" else min(OPEN_MAX, OPEN * 2**it.opened), it.opened + 1)
        elif ended == "ours":
            it.probe = None
        elif ended == "known":
            it.probe, it.failing_until = None, self.now + min(OPEN_MAX, OPEN * 2**it.opened)
            it.opened += 1

    def _open(self, seconds: int, opened: int) -> None:
        it = self.limiter
        it.state, it.open_until, it.opened = "open", self.now + seconds, opened
        it.failing_until = it.open_until + min(FIRST, OPEN)
        it.probe, it.opened_fence = None, self.newest
