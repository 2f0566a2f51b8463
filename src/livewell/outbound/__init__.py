"""The only HTTP client: address guard, bounded body, deadline, byte count, wall classifier.

Read client.py (one call), then target → guard → exchange → decoding (what it goes through) and wall (what an upstream
means by its refusal).
"""

from livewell.outbound.answer import Answer
from livewell.outbound.client import Outbound
from livewell.outbound.depth import too_deep
from livewell.outbound.exchange import Share
from livewell.outbound.wall import Wall, classify

__all__ = ["Answer", "Outbound", "Share", "Wall", "classify", "too_deep"]
