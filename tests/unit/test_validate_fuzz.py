"""Whatever the bytes, validate() answers with a result for each key.

No exception, in bounded time (F-D3, F-D12).
"""

from __future__ import annotations

import json
import random
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livewell.apps.market import type_files
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Missing, Result, Singly, Value
from livewell.refresh.validate.answer import validate
from tests.support.refresh_types import NOW, QUOTE, ROW, type_of

QUOTES = type_of(QUOTE, columns={"any": {"type": "jsonb", "nullable": True, "from": "timestamp"}})
MARKET = [
    found for path in type_files() if isinstance(found := read_file(path.read_bytes(), path.name), TypeDefinition)
]

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(["AAPL", "A", "", 231.4, 1784750401])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.sampled_from(list(json.loads(ROW))), st.text()), inner, max_size=6)),
    max_leaves=12,
)  # fmt: skip
MANY = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def judged(definition: TypeDefinition, body: bytes, keys: list[str]) -> list[Result]:
    """All of them, each checked to be storable."""
    found = validate(definition, keys, body, content_type="application/json", now=NOW)
    assert list(found) == list(dict.fromkeys(keys))
    for one in found.values():
        if isinstance(one, Value):
            text = json.dumps(one.rows, allow_nan=False)
            assert "\\u0000" not in text.replace("\\\\", "")
            text.encode()
        elif isinstance(one, Failure | Singly):
            assert len(one.detail) <= 300
            assert one.detail.isprintable()
        else:
            assert one == Missing()
    return list(found.values())


@MANY
@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    """Noise."""
    judged(QUOTES, body, ["AAPL"])


@MANY
@given(VALUES, st.sampled_from([["AAPL"], ["AAPL", "A"]]))
def test_any_json(value: Any, keys: list[str]) -> None:
    """Well formed, or with NaN and half surrogates, which Python writes too."""
    judged(QUOTES, json.dumps(value).encode(), keys)


@MANY
@given(st.dictionaries(st.sampled_from(list(json.loads(ROW))), VALUES, max_size=5))
def test_any_row(fields: dict[str, Any]) -> None:
    """One that is nearly right."""
    judged(QUOTES, json.dumps([{**json.loads(ROW), **fields}]).encode(), ["AAPL"])


@settings(max_examples=300, deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
def test_any_number_is_stored_exactly_or_refused(number: Decimal) -> None:
    """Never rounded."""
    body = f"[{ROW.replace('231.40', str(number))}]".encode()
    [found] = judged(type_of(QUOTE, columns={"price": {"type": "numeric"}}), body, ["AAPL"])

    if isinstance(found, Value):
        assert Decimal(str(found.rows[0]["price"])) == number
    else:
        assert isinstance(found, Failure)
        assert found.reason is Reason.BAD_NUMBER


@pytest.mark.parametrize("definition", MARKET, ids=lambda definition: definition.name)
def test_a_body_cut_anywhere_is_refused(definition: TypeDefinition) -> None:
    """At every byte of every shipped sample: nothing is ever stored of a part (F-D3)."""
    body = definition.sample.body.strip().encode()
    reasons = set()
    for cut in range(len(body)):
        [found] = judged(definition, body[:cut], [definition.sample.key])
        assert isinstance(found, Failure), cut
        reasons.add(found.reason)

    assert reasons <= {Reason.TRUNCATED, Reason.EMPTY, Reason.NOT_UTF8}


@pytest.mark.parametrize("definition", MARKET, ids=lambda definition: definition.name)
def test_a_body_with_one_byte_changed_is_judged(definition: TypeDefinition) -> None:
    """A thousand random changes of every shipped sample."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    source = random.Random(seed)
    body = bytearray(definition.sample.body.strip().encode())
    for _ in range(1000):
        place = source.randrange(len(body))
        kept, body[place] = body[place], source.randrange(256)
        judged(definition, bytes(body), [definition.sample.key])
        body[place] = kept


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"[" + b"9" * 1_000_000 + b"]",
        b"[1e" + b"9" * 1_000_000 + b"]",
        b'["' + b"\\ud800" * 150_000 + b'"]',
        b'["' + b"\\u0000" * 150_000 + b'"]',
        b"[" + b"{}," * 300_000 + b"{}]",
        b'[{"symbol":"AAPL"' + b"".join(b',"f%d":1' % n for n in range(80_000)) + b"}]",
        b"[" + b"[]," * 300_000 + b"[]]",
        b'[{"' + b"a" * 900_000 + b'":1}]',
        b'["' + b"\\" * 999_990 + b'"]',
        b" " * 1_000_000,
    ],
    ids=lambda body: body[:12].decode(),
)
def test_a_megabyte_of_anything_takes_less_than_three_seconds(body: bytes) -> None:
    """Linear: the slowest of these takes a few hundred milliseconds on an idle core."""
    large = type_of(QUOTE, fetch={"body_bytes_max": 2_000_000})
    begun = time.process_time()

    [found] = judged(large, body, ["AAPL"])

    assert isinstance(found, Failure)
    assert time.process_time() - begun < 3
