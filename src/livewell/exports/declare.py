"""What exports declare on every app: their queue (E3, E4)."""

from __future__ import annotations

from typing import Any

from livewell.exports.model import QUEUE
from livewell.model import Backoff

_ATTEMPTS = 5
_BACKOFF = Backoff(60, 3600)  # Q6


def declare(app: Any) -> None:
    """Called once, before an app opens."""
    app.queue(QUEUE, attempts=_ATTEMPTS, backoff=_BACKOFF, group_limit=app.settings.export_user_running_max)
