"""F-A10: the schema of the release before is migrated while that release runs.

There are rows in it, and old workers and clients run all the while. Then new workers come beside
them, then the old ones go.

The old processes run the wheel of their release (tests/upgrade). The oracle is the table of effects
and what the old processes print: every job that was enqueued has one effect, every row that was
there is there, the old ones say nothing of errors, and they did work after the migration.

Can it fail? Dropping claim_jobs after the migration stops the old workers: "the old workers did
nothing after the migration".
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import zipfile
from collections import Counter
from pathlib import Path

import psycopg

from livewell.db.migrate import check, migrate
from livewell.testing.history import AppendLog
from livewell.testing.processes import ChildProcess
from tests.faults.fleet import EFFECTS, QUICK, ROOT, Fleet, Worker
from tests.faults.fleet_app import app
from tests.faults.scenario import Findings, Scale
from tests.support.servers import new_database

CODE = "F-A10"
TITLE = "a rolling upgrade"

BEFORE = max((ROOT / "tests/upgrade").glob("*/*.whl"), key=lambda wheel: tuple(map(int, wheel.parent.name.split("."))))
STAGE_SECONDS = 60.0
# The migration locks the table of workers for about 0.3 s: a lease of one second, with calls of a
# third of that, would be lost to it.
LEASE_SECONDS = 6
_TROUBLE = re.compile(r"traceback|\berror\b|\bcritical\b|exception", re.IGNORECASE)
# Of the fixture, upgrade or not: jobs whose task no worker has, and an upstream whose key nobody
# has set.
_OF_THE_FIXTURE = {
    ("test", f"a warning of {BEFORE.parent.name}"),
    ("worker", "job released: task"),
    ("refresh", "quote: auth"),
}
# Rows that no stage may take away: those of the fixture's jobs, wherever they are now, and
# everything that is watched.
KEPT = """
    SELECT (SELECT array_agg(j.id ORDER BY j.id) FROM (SELECT id FROM livewell.job UNION SELECT id FROM livewell.job_history UNION SELECT id FROM livewell.dead_job) j WHERE j.id BETWEEN 64 AND 70),
           (SELECT count(*) FROM livewell.viewer_session), (SELECT count(*) FROM livewell.subscription), (SELECT count(*) FROM livewell.ledger), (SELECT count(*) FROM livewell.universe),
           (SELECT count(*) FROM livewell.data_type), (SELECT count(*) FROM livewell.upstream), (SELECT count(*) FROM livewell.api_key), (SELECT count(*) FROM livewell.limiter)
"""


async def run(scale: Scale) -> Findings:
    """Once, or several times in the campaign: each a database of its own."""
    findings = Findings()
    old = scale.folder / "old"
    with zipfile.ZipFile(BEFORE) as wheel:
        wheel.extractall(old)
    for _ in range(scale.pick(1, 5)):
        with new_database(scale.server) as dsn:
            fixture(dsn)
            await Upgrade(scale, dsn, old, findings).run()
    return findings


def fixture(dsn: str) -> None:
    """The schema and the rows of the release before, and a table for effects."""
    with psycopg.connect(dsn) as connection:
        connection.execute((BEFORE.parent / "schema.sql").read_bytes())
    with psycopg.connect(dsn) as connection:
        connection.execute((BEFORE.parent / "data.sql").read_bytes())
        connection.execute(EFFECTS.encode())
        # The worker in it exists nowhere else: whoever is taken for dead from now on is one of
        # ours.
        connection.execute("UPDATE livewell.worker SET expires_at = 'infinity'")


class Upgrade:
    """One of them."""

    def __init__(self, scale: Scale, dsn: str, old: Path, findings: Findings) -> None:
        self.dsn, self.findings, self.scale = dsn, findings, scale
        self.jobs = scale.pick(40, 400)  # effects to be seen in each stage
        self.stop = scale.folder / f"stop-{secrets.token_hex(4)}"
        self.fleet = Fleet(
            dsn, AppendLog(scale.folder / f"runs-{self.stop.name}.log"), app, QUICK | {"lease_seconds": LEASE_SECONDS}
        )
        self.old = {"PYTHONPATH": os.pathsep.join([str(old), str(ROOT)])}

    async def run(self) -> None:
        """Old alone, migration, old on the new schema, both, new alone."""
        before = self.fleet.rows(KEPT)
        client = ChildProcess(
            ["-m", "tests.faults.upgrade_client", str(self.stop)],
            cwd=ROOT,
            env=self.old | {"DATABASE_URL": self.dsn, "LIVEWELL_TEST_LOG": str(self.fleet.log.path)},
            program=sys.executable,
        )
        try:
            with client:
                await self._stages(client)
        finally:
            self.fleet.close()
        self.findings.check(self.fleet.rows(KEPT) == before, f"rows: {before} became {self.fleet.rows(KEPT)}")
        self.fleet.close()

    async def _stages(self, client: ChildProcess) -> None:
        version = BEFORE.parent.name
        # One after the other: two workers of 0.4 that start at once may each make a day of history,
        # and one of them gives up.
        workers = [*await self.fleet.workers(1, env=self.old), *await self.fleet.workers(1, env=self.old)]
        await asyncio.to_thread(client.wait_for, f"release {version}", STAGE_SECONDS)
        await self._seen(workers, "before the migration")
        await asyncio.to_thread(migrate, self.dsn)
        self.findings.fired += 1
        after = await self._seen(workers, "after the migration")
        new = await self.fleet.workers(1)
        both = await self._seen(new, "beside the old ones")
        await self._seen(workers, "beside a new one")
        for worker in workers:
            worker.terminate()
        for worker in workers:
            self.findings.check(await worker.ended() == 0, "an old worker did not end well")
        alone = await self._seen(new, "alone")
        self.stop.touch()
        self.findings.check(await asyncio.to_thread(client.wait, STAGE_SECONDS) == 0, "the old client did not end well")
        await self._judge(client, workers, new)
        self.findings.figures = {
            "from": version,
            "jobs": len(self.fleet.jobs),
            "old_after_migration": after,
            "new_beside_old": both,
            "new_alone": alone,
        }

    async def _seen(self, workers: list[Worker], when: str) -> int:
        """Wait until these have written so many effects from now on; answers how many."""
        pids = [worker.pid for worker in workers]
        query = "SELECT count(*) FROM public.effect WHERE pid = ANY (%s)"
        begin = self.fleet.value(query, (pids,))
        took = await self.fleet.until(
            "count(*) >= %s FROM public.effect WHERE pid = ANY (%s)", STAGE_SECONDS, (begin + self.jobs, pids)
        )
        n = int(self.fleet.value(query, (pids,)) - begin)
        self.findings.check(took is not None, f"{when}: {n} effects in {STAGE_SECONDS:g} s, {self.jobs} were awaited")
        return n

    async def _judge(self, client: ChildProcess, old: list[Worker], new: list[Worker]) -> None:
        words = [line.split() for line in client.lines("stdout") if line.startswith("enqueued ")]
        self.fleet.jobs.update((int(key), int(job)) for _, key, job in words)
        self.fleet.tasks.update(dict.fromkeys(self.fleet.jobs, "effect"))
        done = "NOT EXISTS (SELECT FROM livewell.job WHERE id = ANY (%s))"
        took = await self.fleet.until(done, STAGE_SECONDS, (list(self.fleet.jobs.values()),))
        self.findings.check(took is not None, "jobs were left")
        self.fleet.audit(self.findings, dead=())
        said = [line for child in (client, *(worker.child for worker in (*old, *new))) for line in child.lines()]
        trouble = Counter(line[:200] for line in said if _TROUBLE.search(line))
        self.findings.check(not trouble, f"processes spoke of trouble: {trouble.most_common(3)}")
        warned = set(self.fleet.rows("SELECT place, what FROM livewell.warning")) - _OF_THE_FIXTURE
        self.findings.check(not warned, f"failures were tolerated: {warned}")
        self.findings.check(check(self.dsn) == [], "the schema is not as a new installation has it")
