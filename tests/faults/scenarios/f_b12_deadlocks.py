"""F-B12: handlers that really deadlock with each other, and handlers whose snapshot is overtaken (40001).

None of it is the job's fault: it runs again, no attempt is counted, nothing is dead-lettered, and
the accounts add up. Postgres's own statistics count the deadlocks.

Proven: with run.is_conflict() answering False attempts were counted; with READ COMMITTED in
`reread` updates were lost and the accounts did not add up.
"""

from __future__ import annotations

from collections import Counter

from tests.faults.database_support import ACCOUNTS, SPECIAL, check_alive, check_torn, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B12"
TITLE = "deadlocks and serialisation failures in handlers"

PAUSE_SECONDS = 0.03
RETRIES_MAX = 60  # of one job; a retry comes after 10 to 200 ms, so more than this would be a storm


async def run(scale: Scale) -> Findings:
    findings, choose = Findings(), scale.random()
    async with open_fleet(scale, lease_seconds=4, pool_size_max=8, worker_slots=8) as fleet:
        database = fleet.value("SELECT current_database()")
        fleet.rows(f"ALTER DATABASE \"{database}\" SET deadlock_timeout = '20ms'")
        fleet.rows(ACCOUNTS)
        fleet.rows("INSERT INTO account (id) SELECT generate_series(1, 6)")
        await fleet.workers(2, command=SPECIAL)
        crossing: list[int] = []
        rereading: list[int] = []
        for _ in range(scale.pick(12, 400)):
            one, two = choose.sample((1, 2, 3), 2)
            crossing += await fleet.enqueue("cross", 1, first=one, second=two, seconds=PAUSE_SECONDS)
            crossing += await fleet.enqueue("cross", 1, first=two, second=one, seconds=PAUSE_SECONDS)
            rereading += await fleet.enqueue("reread", 2, account=choose.choice((4, 5, 6)), seconds=PAUSE_SECONDS)
        took = await fleet.converge(findings, scale.pick(25, 600))
        fleet.tasks.update(dict.fromkeys(crossing + rereading, "effect"))  # they write one each
        tally = fleet.audit(findings)
        torn = check_torn(fleet, findings, ("cross", "reread"))
        check_alive(fleet, findings)
        conflicts = Counter(line.event for line in fleet.events())
        findings.fired = min(conflicts["40P01"], conflicts["40001"])
        findings.check(conflicts["40P01"] > 0, "nobody deadlocked")
        findings.check(conflicts["40001"] > 0, "no snapshot was overtaken")
        retries_max = _check_not_counted(fleet, findings)
        _check_accounts(fleet, findings, crossed=len(crossing), reread=len(rereading))
        findings.figures |= {
            "deadlocks": conflicts["40P01"],
            "deadlocks_by_the_server": fleet.value(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            ),
            "serialisation_failures": conflicts["40001"],
            "retries": tally.repeated,
            "retries_of_one_job_max": retries_max,
            "leaks": tally.lost + tally.dead,
            "torn": torn,
            "converged_seconds": rounded(took),
        }
    return findings


def _check_not_counted(fleet: Fleet, findings: Findings) -> int:
    """Every job ended in its first attempt; answers how often the unluckiest ran again."""
    attempts = fleet.value("SELECT max(attempt) FROM livewell.job_history")
    findings.check(attempts == 1, f"a conflict was counted as an attempt: a job ended in attempt {attempts}")
    runs = Counter(line.key for line in fleet.events() if line.event == "start")
    most = max(runs.values()) - 1
    findings.check(most <= RETRIES_MAX, f"one job ran again {most} times")
    return most


def _check_accounts(fleet: Fleet, findings: Findings, *, crossed: int, reread: int) -> None:
    crossed_sum, reread_sum = fleet.rows(
        "SELECT sum(n) FILTER (WHERE id <= 3)::integer, sum(n) FILTER (WHERE id > 3)::integer FROM account"
    )[0]
    findings.check(crossed_sum == 2 * crossed, f"{crossed} jobs moved two accounts each, {crossed_sum} moves are there")
    findings.check(reread_sum == reread, f"{reread} jobs added one each, {reread_sum} were added: an update was lost")
