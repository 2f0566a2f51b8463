"""Which batch endpoints to leave alone for a while.

An endpoint is left alone when it was refused several times in a row, whatever keys it was asked
for.
"""

from __future__ import annotations

import time
from collections import defaultdict

from livewell.refresh.result import Results, Singly

# Calls in a row: one of them may have been refused for one of its keys, which is asked alone from
# then on.
_REFUSED_MAX = 3
_ALONE_SECONDS = 3600.0

Endpoint = tuple[str, int]  # a type and its version


class BatchEndpoints:
    """What this process has seen of batch endpoints."""

    def __init__(self) -> None:
        self._refused: defaultdict[Endpoint, int] = defaultdict(int)
        self._closed_until: dict[Endpoint, float] = {}

    def is_closed(self, endpoint: Endpoint) -> bool:
        """True while its keys are to be asked for one by one."""
        return self._closed_until.get(endpoint, 0.0) > time.monotonic()

    def note(self, endpoint: Endpoint, results: Results) -> None:
        """These came of a call for several keys."""
        result = next(iter(results.values()))
        in_row = self._refused[endpoint] + 1 if isinstance(result, Singly) and result.endpoint else 0
        self._refused[endpoint] = in_row
        if in_row >= _REFUSED_MAX:
            self._closed_until[endpoint] = time.monotonic() + _ALONE_SECONDS
