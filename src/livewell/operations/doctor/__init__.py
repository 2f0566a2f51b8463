"""The runbook as a command (R25): what was seen, what it means, and the command that mends it.

examination.py  asks the database and runs every check, each on its own
finding.py      what a check says
server.py       the database: reachable, primary, clock, listening, schema, transactions, bloat
work.py         queues, leases, versions, dead letters, schedules
freshness.py    types, refusals of upstreams, quota, breaker, viewers
gate.py         somebody is hammering at the server's gate
"""

from livewell.operations.doctor.examination import examine
from livewell.operations.doctor.finding import Finding

__all__ = ["Finding", "examine"]
