"""Small definitions for tests, as documents that a test changes where it wants to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from livewell.refresh.definition.document import read
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition

NOW = datetime(2026, 7, 22, 20, 5, tzinfo=UTC)
ROW = '{"symbol": "AAPL", "price": 231.40, "volume": 41237893, "name": "Apple Inc.", "timestamp": 1784750401}'

UPSTREAM: dict[str, Any] = {
    "upstream": {
        "name": "fmp",
        "base_url": "https://financialmodelingprep.com/stable",
        "credential_in": "header:apikey",
        "credentials": ["FMP_API_KEY"],
        "vocabulary": "fmp",
        "rate": "300/min",
        "budget": "20GB/30d",
        "concurrency": 10,
        "per_key": 1,
    }
}
QUOTE: dict[str, Any] = {
    "type": {
        "name": "quote",
        "upstream": "fmp",
        "ttl": "1m",
        "negative_ttl": "1h",
        "strategy": "on_demand",
        "size_estimate": 700,
    },
    "fetch": {
        "path": "/quote",
        "query": {"symbol": "{key}"},
        "key_pattern": "[A-Z0-9.^=-]{1,20}",
        "body_bytes_max": 100000,
        "batch": {"path": "/batch-quote", "query": {"symbols": "{keys}"}, "keys_max": 50},
    },
    "answer": {
        "rows": "@",
        "kind": "one",
        "key": "symbol",
        "source_time": {"field": "timestamp", "format": "unix_seconds"},
    },
    "columns": {
        "price": {"type": "numeric", "min": 0, "above_min": True, "max": 10000000},
        "volume": {"type": "numeric", "nullable": True, "min": 0},
        "name": {"type": "text", "nullable": True, "max_length": 300, "empty_is_null": True},
        "timestamp": {"type": "bigint"},
    },
    "sample": {"key": "AAPL", "recorded": "2026-07-22", "body": f"[{ROW}]"},
}
PRICES: dict[str, Any] = {
    "type": {**QUOTE["type"], "name": "prices"},
    "fetch": {key: value for key, value in QUOTE["fetch"].items() if key != "batch"},
    "answer": {
        "rows": "@",
        "kind": "series",
        "row_key": ["date"],
        "key": "symbol",
        "source_time": {"field": "date", "format": "date"},
        "future_max": "1d",
    },
    "columns": {"date": {"type": "date"}, "close": {"type": "numeric", "min": 0}},
    "sample": {
        "key": "AAPL",
        "recorded": "2026-07-22",
        "body": '[{"symbol": "AAPL", "date": "2026-07-21", "close": 229.45}, {"symbol": "AAPL", "date": '
        '"2026-07-20", "close": 228}]',
    },
}


def changed(document: Mapping[str, Any], **parts: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with values of its tables replaced; None takes one away.

    `changed(QUOTE, type={"ttl": "5m"})`.
    """
    found = copy.deepcopy(dict(document))
    for part, values in parts.items():
        for name, value in values.items():
            if value is None:
                found[part].pop(name, None)
            else:
                found[part][name] = value
    return found


def type_of(document: Mapping[str, Any], **parts: Mapping[str, Any]) -> TypeDefinition:
    """Read a type, changed or not."""
    found = read(changed(document, **parts), "test.toml")
    assert isinstance(found, TypeDefinition)
    return found


def upstream_of(document: Mapping[str, Any] = UPSTREAM, **parts: Mapping[str, Any]) -> UpstreamDefinition:
    """Read an upstream, changed or not."""
    found = read(changed(document, **parts), "fmp.toml")
    assert isinstance(found, UpstreamDefinition)
    return found
