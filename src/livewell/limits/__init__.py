"""Limiters: how much of an outside resource may be used, by the whole fleet. The decisions are in sql/; here they are declared and told what the upstream says."""

from livewell.limits.limiter import Breaker, Limiter, Limits
from livewell.limits.walls import Walls

__all__ = ["Breaker", "Limiter", "Limits", "Walls"]
