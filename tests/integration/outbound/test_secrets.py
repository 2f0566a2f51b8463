"""A credential goes to the upstream and nowhere else.

No error, log line, repr or traceback ever shows it (F-F5).
"""

import logging
import traceback
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from livewell.errors import CallFailed, InvalidOption
from livewell.outbound import Outbound
from livewell.testing import FakeUpstream
from tests.integration.outbound.hostile import HostileServer, answering
from tests.integration.outbound.support import BODY_BYTES_MAX

CANARY = "canary/7f3a&9c=1d"
FORMS = (CANARY, quote(CANARY, safe=""), "canary")


@pytest.fixture
def noise(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged at any level."""
    caplog.set_level(logging.DEBUG)
    return caplog


def told(error: BaseException) -> str:
    """All that an error says, with everything that hangs on it."""
    parts: list[str] = ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
    seen: BaseException | None = error
    while seen is not None:
        parts += [repr(seen), str(seen), str(vars(seen))]
        seen = seen.__cause__ or seen.__context__
    return "\n".join(parts)


async def call(outbound: Outbound, url: str, where: str, body_bytes_max: int = BODY_BYTES_MAX) -> Any:
    secret = {"apikey": SecretStr(CANARY)}
    return await outbound.get(
        url,
        headers=secret if where == "header" else None,
        query=secret if where == "query" else None,
        body_bytes_max=body_bytes_max,
    )


@pytest.mark.parametrize("where", ["header", "query"])
async def test_the_upstream_gets_it(outbound: Outbound, where: str) -> None:
    """In the header as it is, in the query percent-encoded after the URL's own parameters."""
    async with HostileServer(answering(b"HTTP/1.1 204 No Content\r\n\r\n")) as server:
        await call(outbound, f"{server.url}/quote?symbol=A", where)

    expected = f"apikey: {CANARY}" if where == "header" else f"?symbol=A&apikey={quote(CANARY, safe='')} HTTP"
    assert expected in server.requests[0].decode()


@pytest.mark.parametrize("where", ["header", "query"])
@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"HTTP/1.1 canary/7f3a&9c=1d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: canary/7f3a&9c=1d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\ncanary/7f3a&9c=1d",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncanary/7f3a&9c=1d",
        b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncanary/7f3a&9c=1d\r\n\r\n",
    ],
)
async def test_no_failure_repeats_it(
    outbound: Outbound, where: str, wire: bytes, noise: pytest.LogCaptureFixture
) -> None:
    """Not even when the upstream echoes it in the place that is complained about."""
    async with HostileServer(answering(wire)) as server:
        with pytest.raises(CallFailed) as caught:
            await call(outbound, f"{server.url}/quote", where)

    # An answer's headers are the upstream's words; they are handed over for the classifier and
    # shown by nobody.
    caught.value.headers = {}
    assert not [form for form in FORMS if form in told(caught.value)]
    assert len(caught.value.detail) <= 300
    assert not [form for form in FORMS if form in noise.text]


@pytest.mark.parametrize("where", ["header", "query"])
async def test_nor_do_those_of_the_network(where: str, noise: pytest.LogCaptureFixture, upstream: FakeUpstream) -> None:
    """Refused, no such name, the wrong address, a missed deadline, not even a connection."""
    urls = [
        "http://127.0.0.1:1/",
        "https://nowhere.invalid/",
        "https://localhost/",
        f"{upstream.url}/hang",
        "https://x.y/",
    ]
    await upstream.behave(path="/hang", fault="hang")
    errors: list[str] = []
    async with Outbound(
        allowed_hosts=["nowhere.invalid", "localhost"], private_hosts=["127.0.0.1"], deadline_seconds=0.5
    ) as client:
        for url in urls:
            with pytest.raises(CallFailed) as caught:
                await call(client, url, where)
            errors.append(told(caught.value))

    assert not [form for form in FORMS for error in errors if form in error]
    assert not [form for form in FORMS if form in noise.text]


async def test_aiohttps_own_errors_do_not_hang_on_ours(outbound: Outbound) -> None:
    """They hold the URL and every header of the request, for whoever walks the chain."""
    with pytest.raises(CallFailed) as caught:
        await call(outbound, "http://127.0.0.1:1/", "header")

    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_a_credential_that_cannot_be_sent_is_named_not_shown(outbound: Outbound) -> None:
    """A key read from a file with its newline is the usual way."""
    with pytest.raises(InvalidOption, match="header apikey") as caught:
        await outbound.get("http://127.0.0.1:1/", headers={"apikey": SecretStr(CANARY + "\n")}, body_bytes_max=10)

    assert not [form for form in FORMS if form in told(caught.value)]


async def test_an_answer_shows_no_body_and_no_header_in_its_repr(outbound: Outbound, upstream: FakeUpstream) -> None:
    """An upstream that echoes the request would otherwise write it into our logs."""
    await upstream.behave(content=CANARY.encode(), headers={"X-Echo": CANARY})

    answer = await call(outbound, f"{upstream.url}/quote", "header")

    assert answer.body == CANARY.encode()
    assert not [form for form in FORMS if form in repr(answer)]
