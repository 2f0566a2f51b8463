"""The registry as a process knows it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from livewell.apps.market import TYPES
from livewell.errors import UnknownType
from livewell.refresh.definition import document as documents
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.registry.look_alikes import has_twin
from livewell.refresh.registry.registry import Registry
from tests.support.refresh_types import PRICES, QUOTE, UPSTREAM, changed


class Tables:
    """Two tables, and what was asked of them."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, tuple[int, str]]] = {"upstream": {}, "data_type": {}}
        self.asked: list[str] = []
        self.put("upstream", "fmp", 1, UPSTREAM["upstream"])
        self.put("data_type", "quote", 1, QUOTE)

    def put(self, table: str, name: str, version: int, document: dict[str, Any]) -> None:
        self.rows[table][name] = (version, documents.write(document))

    async def call(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        table = "upstream" if "livewell.upstream" in query else "data_type"
        self.asked.append(f"{table}: {'rows' if params else 'versions'}")
        if params:
            return [(name, *self.rows[table][name]) for name in params[0]]
        return [(name, version) for name, (version, _) in self.rows[table].items()]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_definition_is_read_once() -> None:
    """And not looked for again until some seconds have passed."""
    tables, clock = Tables(), Clock()
    registry = Registry(tables.call, look_seconds=2, clock=clock)
    first = await registry.type("quote")
    asked = len(tables.asked)

    assert await registry.type("quote") is first
    assert len(tables.asked) == asked
    clock.now += 3
    assert await registry.type("quote") is first
    assert tables.asked[asked:] == ["upstream: versions", "data_type: versions"]


async def test_a_change_is_noticed_without_a_restart() -> None:
    """After the time, when told, or when a job is of a newer version."""
    tables, clock = Tables(), Clock()
    registry = Registry(tables.call, look_seconds=2, clock=clock)
    await registry.type("quote")
    tables.put("data_type", "quote", 2, changed(QUOTE, type={"ttl": "5m"}))

    assert (await registry.type("quote")).version == 1
    assert (await registry.type("quote", version=2)).definition.ttl_seconds == 300
    tables.put("data_type", "quote", 3, changed(QUOTE, type={"ttl": "9m"}))
    registry.forget_time()
    assert (await registry.type("quote")).version == 3
    tables.put("data_type", "quote", 4, QUOTE)
    clock.now += 2.5
    assert (await registry.type("quote")).version == 4


async def test_what_is_gone_is_forgotten() -> None:
    """Types and upstreams alike."""
    tables = Tables()
    registry = Registry(tables.call, look_seconds=0)
    await registry.upstream("fmp")
    tables.rows = {"upstream": {}, "data_type": {}}

    with pytest.raises(UnknownType, match='type "quote" is not in the registry'):
        await registry.type("quote")
    with pytest.raises(UnknownType, match='upstream "fmp" is not in the registry'):
        await registry.upstream("fmp")


async def test_a_row_that_cannot_be_read_does_not_hide_the_others() -> None:
    """It is named, it is not tried again until it changes, and the old definition is not used."""
    tables = Tables()
    registry = Registry(tables.call, look_seconds=0)
    tables.put("data_type", "broken", 1, changed(QUOTE, type={"name": "broken", "ttl": "-5m"}))

    assert (await registry.type("quote")).version == 1
    with pytest.raises(UnknownType, match="ttl"):
        await registry.type("broken")
    assert list(registry.unreadable) == ["broken"]
    reads = tables.asked.count("data_type: rows")
    await registry.type("quote")
    assert tables.asked.count("data_type: rows") == reads

    tables.put("data_type", "broken", 2, changed(QUOTE, type={"name": "broken"}))
    assert (await registry.type("broken")).version == 2
    assert registry.unreadable == {}


async def test_a_type_whose_answers_another_type_could_give_has_a_twin() -> None:
    """Both repeat the key, neither says its type.

    A change of either is seen, and other types are not affected (R14).
    """
    tables, clock = Tables(), Clock()
    registry = Registry(tables.call, look_seconds=2, clock=clock)
    await registry.type("quote")
    assert not registry.has_twin("quote")

    tables.put("data_type", "late_quote", 1, changed(QUOTE, type={"name": "late_quote"}))
    tables.put("data_type", "prices", 1, PRICES)
    clock.now += 3
    await registry.type("quote")
    assert {name: registry.has_twin(name) for name in registry.types} == {
        "quote": True,
        "late_quote": True,
        "prices": False,
    }

    del tables.rows["data_type"]["late_quote"]
    clock.now += 3
    await registry.type("quote")
    assert not registry.has_twin("quote")


def test_no_shipped_type_has_a_twin() -> None:
    """The types of the market keep sharing connections."""
    shipped = [
        documents.read(tomllib.loads(path.read_text(), parse_float=Decimal), path.name) for path in TYPES.glob("*.toml")
    ]
    types = [one for one in shipped if isinstance(one, TypeDefinition)]

    assert len(types) == 8
    assert [one.name for one in types if has_twin(one, types)] == []
