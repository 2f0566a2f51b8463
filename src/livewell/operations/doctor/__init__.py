"""The runbook as a command (R25): what was seen, what it means, and the command that mends it.

examination.py  asks the database and runs the checks of every capability, each on its own
server.py       the database: reachable, primary, clock, listening, schema, transactions, bloat

The other checks are in the module `doctor` of the package that they look at. What a check says is
livewell.finding.
"""

from livewell.finding import Finding
from livewell.operations.doctor.examination import examine

__all__ = ["Finding", "examine"]
