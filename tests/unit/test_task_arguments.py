"""Arguments of tasks as they are checked and written, one at a time and many at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from livewell.errors import InvalidPayload
from livewell.model import Lane, TaskPolicy
from livewell.queue.definition import TaskDefinition, define

_BYTES_MAX = 262_144


class Stone(BaseModel):
    """A model inside of arguments."""

    carats: Decimal
    shape: str = "round"


async def appraise(
    stone: Stone,
    day: date,
    margin: Annotated[int, Field(ge=-100, le=100)] = 10,
    tags: list[str] = [],  # noqa: B006 - pydantic copies it
) -> None: ...


async def odd_names(keys: int, items: str = "x", values: float | None = None, pop: bool = False) -> None: ...


async def nothing() -> None: ...


def _define(function: Callable[..., Any]) -> TaskDefinition:
    return define(
        function,
        name=None,
        policy=TaskPolicy(queue="q", attempts=None, timeout_seconds=60.0, lane=Lane.BACKGROUND, priority=0),
    )


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (appraise, {"stone": {"carats": "1.20"}, "day": "2026-11-17"}),
        (appraise, {"stone": Stone(carats=Decimal(2)), "day": date(2026, 11, 17), "margin": "-3", "tags": ["a"]}),
        (odd_names, {"keys": 1}),
        (odd_names, {"keys": 1, "values": 2, "pop": True, "items": "é\U0001f48e"}),
        (nothing, {}),
    ],
)
def test_many_are_written_as_each_alone_is(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Defaults filled in, values converted, in the same words."""
    definition = _define(function)
    alone = definition.encode(arguments, _BYTES_MAX)
    assert definition.encode_many([arguments] * 3, _BYTES_MAX) == f"[{alone},{alone},{alone}]"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"stone": {"carats": "x"}, "day": "2026-11-17"},
        {"stone": {"carats": 1}, "day": "2026-11-17", "margin": 101},
        {"stone": {"carats": 1}, "day": "2026-11-17", "price": 1},
        {"stone": {"carats": 1}, "day": "2026-11-17", "tags": ["\x00"]},
        {"stone": {"carats": 1}, "day": "2026-11-17", "tags": ["\ud800"]},
    ],
)
def test_what_is_refused_alone_is_refused_among_many(arguments: dict[str, Any]) -> None:
    """Missing, mistyped, out of bounds, unknown, unstorable."""
    definition = _define(appraise)
    with pytest.raises(InvalidPayload):
        definition.encode(arguments, _BYTES_MAX)
    with pytest.raises(InvalidPayload):
        definition.encode_many([{"stone": {"carats": 1}, "day": "2026-11-17"}, arguments], _BYTES_MAX)


def test_a_default_is_not_shared_between_jobs() -> None:
    """What one job's list becomes is not the next one's default."""
    definition = _define(appraise)
    many = [{"stone": {"carats": 1}, "day": "2026-11-17"}] * 2
    first = definition.encode_many(many, _BYTES_MAX)
    assert definition.encode_many(many, _BYTES_MAX) == first
