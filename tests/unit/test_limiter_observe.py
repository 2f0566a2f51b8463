"""What an upstream says about its limits, as an instant.

Measured by the database's clock, whatever ours says (F-C1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from livewell.limits.limiter import Limiter, Limits

NOW = 1_900_000_000.0  # the database's; years from ours


class Calls:
    """A database that knows the time and writes down what it was told."""

    def __init__(self) -> None:
        self.observed: list[Sequence[Any]] = []

    async def __call__(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        if "livewell.now()" in query:
            return [(NOW,)]
        self.observed.append(params)
        return [(True,)]


@pytest.mark.parametrize(
    ("headers", "reset", "retry"),
    [
        ({"Retry-After": "Sun, 17 Mar 2030 17:47:10 GMT"}, None, 30.0),
        ({"Retry-After": "Sun, 17 Mar 2030 17:40:00 GMT"}, None, 0.0),
        ({"Retry-After": "7"}, None, 7.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1900000012"}, 12.0, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "12"}, 12.0, None),
    ],
)
async def test_instants_are_measured_by_the_databases_clock(
    headers: dict[str, str], reset: float | None, retry: float | None
) -> None:
    """A worker that lives in another year comes to the same seconds."""
    calls = Calls()
    assert await Limiter("api", Limits({}, ()), calls).observe(headers)
    [(_, _, _, _, *said)] = calls.observed
    assert said == [reset, retry]


@pytest.mark.parametrize("text", ["soon", "", "Sun, 17 Mar 2030 17:47:10", "99 Foo"])
async def test_nonsense_says_nothing(text: str) -> None:
    """And costs no call."""
    calls = Calls()
    assert not await Limiter("api", Limits({}, ()), calls).observe({"Retry-After": text})
    assert calls.observed == []
