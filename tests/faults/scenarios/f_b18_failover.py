"""F-B18: the primary is lost, and a standby that lacks its last transactions takes its place.

Nobody is given a number that somebody else still holds.

    primary ──streams──▶ standby        jobs, a worker, claims, a term of a singleton
    primary      ✂       standby        more claims, a worker, ids and a term that the standby never hears of; then the primary is gone
                         promoted       another worker claims everything; the first one comes back with its old results

The oracle is what was handed out before and after, as the test wrote it down.

Can it fail? Yes: with a raise_fences that does nothing, fences, job ids, worker numbers and terms
all went back and were handed out twice.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from livewell.db import embedded, migrate
from tests.faults.scenario import Findings, Scale
from tests.support.queue_sql import Claim, QueueSession
from tests.support.standby import can_make_standby, cut_off, promote, standby_of, wait_until_replayed

CODE = "F-B18"
TITLE = "failover to a standby that lacks the last transactions"

_JOBS = 200
_LOST = 40  # a sequence is logged 32 numbers ahead: with fewer the standby would know of all by chance
_TERM = "SELECT fence FROM livewell.acquire_singleton('sweep', %s, NULL, '100 ms')"


@dataclass(slots=True)
class Handed:
    """Every number that somebody was given."""

    fences: set[int] = field(default_factory=set)
    ids: set[int] = field(default_factory=set)
    workers: set[int] = field(default_factory=set)
    terms: set[int] = field(default_factory=set)

    def claims(self, claims: Iterable[Claim]) -> None:
        """Remember their fences."""
        self.fences |= {claim.fence for claim in claims}


async def run(scale: Scale) -> Findings:
    """One failover after another, each with servers of its own."""
    findings = Findings()
    if not can_make_standby():
        findings.skipped = "the installed Postgres has no pg_basebackup"
        return findings
    lost = fenced = 0
    for number in range(scale.pick(1, 10)):
        claims, refused = await asyncio.to_thread(_in_a_folder, number, findings)
        findings.fired += 1
        lost, fenced = lost + claims, fenced + refused
    findings.figures = {"failovers": findings.fired, "claims_lost": lost, "old_results_fenced": fenced}
    return findings


def _in_a_folder(number: int, findings: Findings) -> tuple[int, int]:
    with tempfile.TemporaryDirectory(prefix=f"livewell-failover-{number}-") as folder:
        Path(folder).chmod(0o755)  # the server has an account of its own
        return _fail_over(Path(folder) / "primary", findings)


def _fail_over(folder: Path, findings: Findings) -> tuple[int, int]:
    """Answers how many claims the standby never heard of, and how many old results were refused."""
    before, after = Handed(), Handed()
    primary = embedded.start(folder).dsn
    try:
        migrate.migrate(primary)
        with standby_of(primary) as standby:
            with QueueSession(primary) as session:
                session.declare()
                session.enqueue(_JOBS)
                worker = session.register()
                _hand_out(session, worker, before, 5)
                wait_until_replayed(primary, standby)
                cut_off(standby)
                held = _hand_out(session, worker, before, _LOST)
            embedded.stop(folder, mode="immediate")
            promote(standby)
            return _go_on(standby, held, before, after, findings)
    finally:
        embedded.stop(folder, mode="immediate")


def _hand_out(session: QueueSession, worker: int, handed: Handed, times: int) -> list[Claim]:
    """So many times one of everything; answers the claims."""
    claims: list[Claim] = []
    handed.workers.add(worker)
    for _ in range(times):
        claims += session.claim(worker, 1)
        handed.ids |= set(session.ids(64))
        handed.workers.add(session.register())
        session.rows("UPDATE livewell.singleton SET expires_at = '-infinity'")
        handed.terms.add(session.value(_TERM, "somebody"))
    handed.claims(claims)
    return claims


def _go_on(standby: str, held: list[Claim], before: Handed, after: Handed, findings: Findings) -> tuple[int, int]:
    with QueueSession(standby) as session:
        worker = session.register(name="new")
        waiting = set(session.column("SELECT id FROM livewell.job WHERE state = 'ready'"))
        lost = sum(claim.id in waiting for claim in held)
        findings.check(lost == len(held), f"{lost} of {len(held)} claims were lost with the primary: nothing was tried")
        _hand_out(session, worker, after, _JOBS - 5)
        for what in ("fences", "ids", "workers", "terms"):
            old, new = getattr(before, what), getattr(after, what)
            findings.check(min(new) > max(old), f"{what}: {min(new)} was handed out after {max(old)}")
            findings.check(not old & new, f"{what} handed out twice: {sorted(old & new)[:5]}")
        refused = session.finish(*held)
        findings.check(len(refused) == len(held), f"{len(held) - len(refused)} old results were taken for new ones")
        left = session.value("SELECT count(*) FROM livewell.job WHERE state = 'running' AND worker = %s", worker)
        findings.check(left >= len(held), f"of the new worker's claims {left} are left")
        return lost, len(refused)
