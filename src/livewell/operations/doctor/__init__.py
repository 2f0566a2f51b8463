"""The runbook as a command (R25): for each known failure what was seen, what it means, and the exact command that mends it.

examination  asks the database and runs every check, each on its own      server       the database itself: reachable, primary, clock, listening, schema, transactions, bloat
finding      what a check says                                             work         queues, leases, versions, dead letters, schedules
                                                                           freshness    types, refusals of upstreams, quota, breaker, viewers
"""

from livewell.operations.doctor.examination import examine
from livewell.operations.doctor.finding import Finding

__all__ = ["Finding", "examine"]
