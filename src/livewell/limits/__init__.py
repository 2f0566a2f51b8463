"""Limiters: how much of an outside resource may be used, by the whole fleet.

The decisions are in sql/; here limiters are declared, and told what the upstream says.

limiter.py   a limiter, as it is declared and observed
notation.py  limits as people write them: "300/min", "20GB/30d"
walls.py     what this process heard of limits and has not told the database yet
capability.py  what limits offer to the rest
doctor.py    checks of the doctor
gauges.py    its gauges
stuck.py     its lines in `livewell state`
"""

from livewell.limits.limiter import Breaker, Limiter, Limits
from livewell.limits.walls import Walls

__all__ = ["Breaker", "Limiter", "Limits", "Walls"]
