"""The clock on which this process counts how long a verdict still holds.

It never goes back, and it goes on while the machine sleeps.
"""

from __future__ import annotations

import time

# On Linux time.monotonic() stands still while the machine sleeps: a laptop that is opened again
# would show yesterday's values as fresh.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds since some instant."""
    return time.clock_gettime(_CLOCK)
