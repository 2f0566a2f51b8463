"""F-B5: every byte to and from the database takes 200 ms longer, each way.

Two workers, so that one could bury the other: nobody loses the lease. The oracle is the worker
table and the sequence of incarnations, read by a direct road.

Proven: with a delay of 0.8 s (there and back more than a third of the lease) a lease ran out and
runs were repeated.
"""

from __future__ import annotations

import time

from tests.faults.database_support import LeaseWatch, at_port, check_alive, check_torn, proxy_to, rounded
from tests.faults.fleet import open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B5"
TITLE = "slow database: 200 ms each way"

DELAY_SECONDS = 0.2
LEASE_SECONDS = 4.0  # a renewal takes 0.4 s, and after five of them a second call of the same length


async def run(scale: Scale) -> Findings:
    findings, watch = Findings(), LeaseWatch()
    async with (
        open_fleet(scale, lease_seconds=LEASE_SECONDS, heartbeat_seconds=0.3, connect_timeout_seconds=10) as fleet,
        proxy_to(fleet.dsn) as proxy,
    ):
        await fleet.workers(2, database_url=at_port(fleet.dsn, proxy.port))
        incarnations = fleet.value("SELECT last_value FROM livewell.worker_id_seq")
        proxy.delay(DELAY_SECONDS)
        slow_from = time.monotonic()
        while time.monotonic() - slow_from < scale.pick(4, 120):
            if fleet.live() < 4:
                await fleet.enqueue("effect", 8)
            await watch.watch(fleet, 0.3)
        ended = sum(line.event == "done" and line.at > slow_from for line in fleet.events())
        took = await fleet.converge(findings, 30)
        findings.fired = proxy.counts.fired.get("delay", 0)
        proxy.heal()
        expired = fleet.value("SELECT last_value FROM livewell.worker_id_seq") - incarnations
        lost = fleet.value("SELECT count(*) FROM livewell.job WHERE lost > 0")
        tally = fleet.audit(findings)
        torn = check_torn(fleet, findings)
        check_alive(fleet, findings)
        findings.check(expired == 0, f"{expired} leases of living workers were lost to slowness alone")
        findings.check(lost == 0 and tally.repeated == 0, f"{lost} jobs were lost, {tally.repeated} runs repeated")
        findings.check(watch.left_seconds_min > 0, f"a lease was over by {-watch.left_seconds_min:.2f} s")
        findings.check(ended > 0, "no job ended while the road was slow")
        findings.figures |= {
            "false_expiries": expired,
            "renewal_gap_seconds_max": rounded(watch.gap_seconds_max),
            "lease_left_seconds_min": rounded(watch.left_seconds_min),
            "lease_seconds": LEASE_SECONDS,
            "ended_while_slow": ended,
            "torn": torn,
            "runs_repeated": tally.repeated,
            "converged_seconds": rounded(took),
        }
    return findings
