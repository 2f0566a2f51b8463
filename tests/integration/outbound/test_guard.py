"""F-D15: wherever a name or a redirect leads, no connection is made to a place that is not allowed.

The judges are a server on loopback that counts its connections, and the sockets that were opened.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from livewell.outbound import Outbound
from livewell.outbound.guard import ADDRESSES_MAX, AddressRefused, Guard
from livewell.outbound.target import Hosts, Target
from tests.integration.outbound.hostile import HostileServer, answering
from tests.integration.outbound.support import failure

PUBLIC = "93.184.216.34"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


class Names:
    """A resolver with a script: each look-up of a name gives the next answer, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, _: str) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
async def inner() -> AsyncIterator[HostileServer]:
    """A service on loopback that nobody outside is meant to reach."""
    async with HostileServer(answering(PLAIN)) as server:
        yield server


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every address that a socket was connected to; none of them is really called."""
    addresses: list[str] = []

    class Dialling(socket.socket):
        def connect(self, address: Any) -> None:
            addresses.append(address[0])
            raise ConnectionRefusedError(111, "not really called")

    monkeypatch.setattr("livewell.outbound.guard.socket.socket", Dialling)
    return addresses


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["100.64.0.1"],
        ["fd00::1"],
        ["0.0.0.0"],  # noqa: S104 - nothing is bound to it here
        ["fe80::1%lo"],
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
        [PUBLIC] * ADDRESSES_MAX + ["127.0.0.1"],
    ],
)
async def test_a_name_that_leads_inside_is_refused(
    inner: HostileServer, dialled: list[str], addresses: list[str]
) -> None:
    """One bad address among good ones refuses them all, before any is dialled.

    Seen to fail when only the first is checked.
    """
    async with Outbound(allowed_hosts=["api.test"], resolve=Names(addresses)) as client:
        failed = await failure(client, f"https://api.test:{inner.port}/")

    assert (failed.reason, failed.sent, inner.connections, dialled) == ("refused_address", False, 0, [])


@pytest.mark.parametrize("addresses", [["169.254.169.254"], ["224.0.0.1"], ["0.1.2.3"], ["127.0.0.1", "fe80::1"]])
async def test_a_private_host_may_be_here_but_not_everywhere(inner: HostileServer, addresses: list[str]) -> None:
    """Metadata, multicast and "this network" are nobody's own service."""
    async with Outbound(allowed_hosts=[], private_hosts=["own.test"], resolve=Names(addresses)) as client:
        failed = await failure(client, f"http://own.test:{inner.port}/")

    assert (failed.reason, inner.connections) == ("refused_address", 0)


async def test_a_private_host_is_called_by_its_name(inner: HostileServer) -> None:
    """The address is the one that was found, the Host header stays the name."""
    async with Outbound(allowed_hosts=[], private_hosts=["own.test"], resolve=Names(["127.0.0.1"])) as client:
        answer = await client.get(f"http://own.test:{inner.port}/", body_bytes_max=100)

    assert answer.status == 200
    assert f"Host: own.test:{inner.port}".encode() in inner.requests[0]


async def test_a_name_that_changes_its_mind_is_called_where_it_was_checked(dialled: list[str]) -> None:
    """Rebinding: public when checked, loopback when asked again.

    It is not asked again, and only the checked address is dialled.
    """
    names = Names([PUBLIC], ["127.0.0.1"])
    async with Outbound(allowed_hosts=["api.test"], resolve=names) as client:
        failed = await failure(client, "https://api.test/")

    assert (failed.reason, names.asked, dialled) == ("connection", 1, [PUBLIC])


async def test_a_client_that_looks_the_name_up_twice_would_be_fooled(
    dialled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same attack on a guard that checks one answer and uses the next.

    The socket's own check still stops it.
    """

    async def check_then_ask_again(self: Guard, host: str, port: int = 0, family: int = 0) -> list[Any]:
        self._checked(host, await self._resolve(host))
        (address,) = await self._resolve(host)
        return [{"hostname": host, "host": address, "port": port, "family": socket.AF_INET, "proto": 6, "flags": 0}]

    monkeypatch.setattr(Guard, "resolve", check_then_ask_again)
    async with Outbound(allowed_hosts=["api.test"], resolve=Names([PUBLIC], ["127.0.0.1"])) as client:
        failed = await failure(client, "https://api.test/")
    assert (failed.reason, dialled) == ("refused_address", [])

    monkeypatch.setattr(Guard, "_check", lambda *_: None)
    async with Outbound(allowed_hosts=["api.test"], resolve=Names([PUBLIC], ["127.0.0.1"])) as client:
        await failure(client, "https://api.test/")
    assert dialled == ["127.0.0.1"]


async def test_an_address_in_the_url_is_checked_at_the_socket_too(
    dialled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No resolver sees it; should the check of the URL ever miss one, the socket does not."""
    monkeypatch.setattr(
        Hosts, "read", lambda *_: Target("https://127.0.0.1:443/", "https://127.0.0.1:443", private=False)
    )
    async with Outbound(allowed_hosts=["api.test"]) as client:
        failed = await failure(client, "https://127.0.0.1/")

    assert (failed.reason, dialled) == ("refused_address", [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "//127.0.0.1:{port}/",
        "https://api.test:1/",
        "/again",
        "gopher://127.0.0.1:{port}/_x",
        "http://[::ffff:127.0.0.1]:{port}/",
    ],
)
async def test_a_redirect_leads_nowhere(inner: HostileServer, location: str, status: int) -> None:
    """It is an answer with a status; nobody goes where it points."""
    wire = f"HTTP/1.1 {status} Moved\r\nLocation: {location.format(port=inner.port)}\r\nContent-Length: 0\r\n\r\n"
    async with (
        HostileServer(answering(wire.encode())) as outer,
        Outbound(allowed_hosts=[], private_hosts=["127.0.0.1"]) as client,
    ):
        answer = await client.get(outer.url, body_bytes_max=100)

    assert (answer.status, len(outer.requests), inner.connections) == (status, 1, 0)


@pytest.mark.parametrize("header", [b"Refresh: 0; url=%s", b"Content-Location: %s", b"Alt-Svc: h3=%s", b"Link: <%s>"])
async def test_nor_does_any_other_header(inner: HostileServer, header: bytes) -> None:
    """No other way to point somewhere is followed either."""
    wire = b"HTTP/1.1 200 OK\r\n" + header % inner.url.encode() + b"\r\nContent-Length: 0\r\n\r\n"
    async with (
        HostileServer(answering(wire)) as outer,
        Outbound(allowed_hosts=[], private_hosts=["127.0.0.1"]) as client,
    ):
        await client.get(outer.url, body_bytes_max=100)

    assert inner.connections == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "2130706433", "127.1", "0x7f000001", "[::1]", "lvh.me"])
async def test_a_host_that_was_not_named_is_refused_before_anything_happens(inner: HostileServer, host: str) -> None:
    """Whatever it would lead to; no name is even looked up."""
    names = Names(["127.0.0.1"])
    async with Outbound(allowed_hosts=["api.test"], resolve=names) as client:
        for scheme in ("http", "https"):
            failed = await failure(client, f"{scheme}://{host}:{inner.port}/")
            assert (failed.reason, failed.sent) == ("refused_address", False)

    assert (names.asked, inner.connections) == (0, 0)


async def test_plain_http_needs_a_private_name(inner: HostileServer) -> None:
    """Everybody else is called with https, or not at all."""
    async with Outbound(allowed_hosts=["api.test"], resolve=Names([PUBLIC])) as client:
        assert (await failure(client, f"http://api.test:{inner.port}/")).reason == "refused_address"


async def test_many_calls_at_once_ask_for_a_name_once(inner: HostileServer) -> None:
    """And its checked addresses are kept for a while.

    A dead name server does not stop calls in full flow.
    """
    names = Names(["127.0.0.1"])
    async with Outbound(allowed_hosts=[], private_hosts=["own.test"], resolve=names) as client:
        await asyncio.gather(
            *(client.get(f"http://own.test:{inner.port}/", body_bytes_max=100) for _ in range(30)),
            return_exceptions=True,
        )

    assert names.asked == 1


async def test_the_machines_own_resolver_is_guarded_too(inner: HostileServer) -> None:
    """localhost, allowed as a host but not named private."""
    async with Outbound(allowed_hosts=["localhost"]) as client:
        failed = await failure(client, f"https://localhost:{inner.port}/")

    assert (failed.reason, inner.connections) == ("refused_address", 0)


async def test_a_name_without_address_is_a_failed_connection() -> None:
    """Not a refusal: it may come back."""
    async with Outbound(allowed_hosts=["api.test"], resolve=Names([])) as client:
        failed = await failure(client, "https://api.test/")

    assert (failed.reason, failed.sent) == ("connection", False)


async def test_the_guard_itself_says_no() -> None:
    """Without aiohttp around it."""
    with pytest.raises(AddressRefused, match=r"address 10\.0\.0\.1 is private"):
        await Guard(Names(["10.0.0.1"]), private=False).resolve("api.test", 443)
