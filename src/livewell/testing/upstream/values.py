"""The data behind the upstream: a version per key that only rises.

So an old answer can be told from a new one.

A row is {symbol, price, version, timestamp}. price = 100 + version/100 carries the version too, for
types whose schema has no room for it. timestamp is Unix seconds and never falls from one version to
the next.
"""

import time
from collections import defaultdict, deque
from typing import Any

from livewell.testing.upstream.behaviour import Behaviour

__all__ = ["Values"]

VERSIONS_KEPT = 100


class Values:
    """The versions of every key."""

    def __init__(self) -> None:
        self._versions: dict[str, deque[tuple[int, int]]] = defaultdict(lambda: deque(maxlen=VERSIONS_KEPT))

    def restore(self, key: str, version: int) -> None:
        """Take over what a server before this one has served: no version is ever served anew."""
        if not self._versions[key] or self._versions[key][-1][0] < version:
            self._versions[key].append((version, int(time.time())))

    def rows(self, keys: tuple[str, ...], behaviour: Behaviour) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Make the rows for these keys, and say which version of each they carry."""
        rows, versions = [], {}
        for key in dict.fromkeys(keys):
            if key in behaviour.missing:
                continue
            version, timestamp = self._version(key, behaviour)
            versions[key] = version
            row = {
                "symbol": behaviour.answer_key or key,
                "price": round(100 + version / 100, 2),
                "version": version,
                "timestamp": timestamp + behaviour.timestamp_shift_seconds,
                **behaviour.fields,
            }
            rows.append({name: value for name, value in row.items() if name not in behaviour.without})
        return rows, versions

    def _version(self, key: str, behaviour: Behaviour) -> tuple[int, int]:
        served = self._versions[key]
        back = behaviour.versions_back
        if not served or (behaviour.advance and not back):
            version, timestamp = served[-1] if served else (0, 0)
            served.append((version + 1, max(timestamp, int(time.time()))))
        return served[max(-1 - back, -len(served))]
