"""The lines, in the order of the table. To add one: a file here with LINES, and its name below."""

from bench.line import Lab, Line
from bench.lines import crowd, drain, enqueue, idle, paced, snapshot, wal

LINES: tuple[Line[Lab], ...] = (
    *drain.LINES,
    *paced.LINES,
    *idle.LINES,
    *enqueue.LINES,
    *crowd.LINES,
    *snapshot.LINES,
    *wal.LINES,
)
