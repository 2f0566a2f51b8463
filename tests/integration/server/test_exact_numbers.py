"""Money is exact (R30): a numeric column keeps all its digits, through every way in and out.

All 38 digits, and the zero at the end.

Seen failing on 0.5.0, with what it cannot import left out: Python and the command line gave
1234567.0123456789, GET lacked the digits too, and an answer's 100.00 was 100.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from decimal import Decimal

import orjson

from livewell import Livewell, Settings
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.read.decode import decode
from livewell.refresh.result import Value
from livewell.refresh.validate.answer import validate
from livewell.testing.sse_client import EventStream
from tests.integration.refresh.test_cli_reads import livewell
from tests.integration.server.test_streams import Viewer
from tests.support.http import Web
from tests.support.market import quote
from tests.support.web_types import STORED, apply_types

EXACT = "1234567.0123456789012345678901234567890"


async def stored(web: Web) -> None:
    await apply_types(web.dsn, web.state.settings)
    web.rows(STORED)
    web.rows(f"UPDATE livewell_data.quote SET price = {EXACT}")


async def test_every_digit_leaves_by_http_and_streams(wire: Web) -> None:
    """As a JSON number with the database's own digits, or as a string for readers whose numbers have fifteen."""
    await stored(wire)
    client = wire.as_key()
    plain = await client.get("/v1/data/quote/AAPL")
    quoted = await client.get("/v1/data/quote/AAPL?numbers=string")
    wrong = await client.get("/v1/data/quote/AAPL?numbers=roman")
    viewer = await Viewer.come(wire)
    await viewer.subscribe("AAPL")
    frames: asyncio.Queue[str] = asyncio.Queue()
    async with await viewer.stream(on_event=lambda _, data: frames.put_nowait(data.decode())):
        streamed = await asyncio.wait_for(frames.get(), 10)
    path = f"/v1/sessions/{viewer.session}/stream?numbers=string"
    async with await EventStream.open(wire.base, path, key=viewer.key) as stream:
        _, strings = await stream.next("reading")

    assert f'"price": {EXACT}' in plain.text
    assert f'"price": {EXACT}' in streamed
    assert (quoted.json()["value"]["price"], strings["value"]["price"]) == (EXACT, EXACT)
    assert (quoted.json()["value"]["timestamp"], quoted.json()["version"]) == ("1784750401", 1)
    assert wrong.status_code == 400


async def test_python_gets_a_decimal(wire: Web, livewell_settings: Settings) -> None:
    """app.get and app.watch: a Decimal for numeric columns, whatever the number; ints stay ints."""
    await stored(wire)
    async with Livewell(livewell_settings) as app:
        got = (await app.get("quote", "AAPL")).value
        async with aclosing(app.watch("quote", ["AAPL"])) as readings:
            watched = (await anext(readings)).value
        wire.rows("UPDATE livewell_data.quote SET price = 5")
        whole = (await app.get("quote", "AAPL")).value["price"]

    assert str(got["price"]) == str(watched["price"]) == EXACT
    assert (type(got["price"]), type(got["timestamp"])) == (Decimal, int)
    assert (whole, type(whole)) == (5, Decimal)


async def test_the_command_line_prints_every_digit(wire: Web, livewell_settings: Settings) -> None:
    """get, get --json and watch --json; a number of 38 digits is no secret."""
    await stored(wire)
    outs = [
        (await livewell(livewell_settings, *words.split()))[1]
        for words in ("get quote AAPL", "get quote AAPL --json", "watch quote AAPL --json --changes 1")
    ]

    assert EXACT in outs[0]
    assert all(f'"price": {EXACT}' in out for out in outs[1:])


def test_an_answers_number_reaches_the_column_digit_by_digit() -> None:
    """38 digits, zeros at the end, and a tenth.

    Equal numbers are still one content, so a source that writes 231.4 today and 231.40 tomorrow has
    changed nothing.
    """

    definition = read_file(quote().encode(), "quote.toml")
    assert isinstance(definition, TypeDefinition)

    def checked(price: str) -> Value:
        body = definition.sample.body.replace('"price": 232.8', f'"price": {price}')
        now = datetime(2026, 11, 17, tzinfo=UTC)
        [found] = validate(definition, ["AAPL"], body.encode(), content_type=None, now=now).values()
        assert isinstance(found, Value), found
        return found

    texts = [EXACT, "231.40", "0.1", "100.00"]

    assert [orjson.loads(orjson.dumps(checked(text).rows))[0]["price"] for text in texts] == texts
    assert checked("231.4").content_hash == checked("231.40").content_hash != checked("231.41").content_hash


def test_only_the_type_says_which_numbers_are_money() -> None:
    """JSON has one kind of number.

    Numeric is Decimal, double and what is inside a jsonb column are as JSON has them; a column that
    is not known here loses nothing.
    """
    columns = {"price": "numeric", "ratio": "double", "more": "jsonb", "n": "bigint", "none": "numeric"}
    text = '{"price": 5, "ratio": 0.1, "more": {"a": [0.10]}, "n": 7, "none": null, "new": 0.10}'

    row = decode(text, columns)

    assert {name: repr(cell) for name, cell in row.items()} == {
        "price": "Decimal('5')",
        "ratio": "0.1",
        "more": "{'a': [0.1]}",
        "n": "7",
        "none": "None",
        "new": "Decimal('0.10')",
    }
