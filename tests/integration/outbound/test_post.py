"""Outbound.post: one request with a body, under the same guard, and an honest word about whether it arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from livewell.errors import CallFailed, InvalidOption, PermitLate
from livewell.outbound import Outbound
from livewell.testing.processes import free_port
from tests.support.receiver import Receiver, always, hang_up, silence


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as running:
        yield running


async def refusal(outbound: Outbound, url: str) -> CallFailed:
    """What this call must end in."""
    with pytest.raises(CallFailed) as caught:
        await outbound.post(url, b"{}", body_bytes_max=10)
    return caught.value


async def test_a_body_and_its_headers_arrive_as_they_are(outbound: Outbound, receiver: Receiver) -> None:
    """Bytes in, bytes out."""
    body = bytes(range(256)) * 100
    answer = await outbound.post(receiver.url, body, headers={"X-Mine": "yes"}, body_bytes_max=10)

    assert answer.status == 204
    assert receiver.received[0].body == body
    assert receiver.received[0].headers["x-mine"] == "yes"


@pytest.mark.parametrize("answer", [hang_up, silence])
async def test_without_an_answer_it_was_sent_once_and_nobody_knows(
    hasty: Outbound, receiver: Receiver, answer: object
) -> None:
    """sent, without a status; and never a second request."""
    receiver.answer = answer  # type: ignore[assignment]  # one of the two above
    failed = await refusal(hasty, receiver.url)

    assert (failed.sent, failed.status) == (True, None)
    assert len(receiver.received) == 1


async def test_nobody_there_means_that_nothing_was_sent(outbound: Outbound) -> None:
    """So it may be tried again."""
    assert (await refusal(outbound, f"http://127.0.0.1:{free_port()}/")).sent is False


async def test_a_dropped_post_is_not_tried_a_second_time(outbound: Outbound, receiver: Receiver) -> None:
    """A connection that dies under a POST: one request each, twenty times."""
    for _ in range(20):
        receiver.answer = always(204)
        await outbound.post(receiver.url, b"a", body_bytes_max=10)
        receiver.answer = hang_up
        await refusal(outbound, receiver.url)
    assert len(receiver.received) == 40


async def test_a_redirect_is_an_answer(outbound: Outbound, receiver: Receiver) -> None:
    """307 would repeat the body elsewhere."""
    async with Receiver() as elsewhere:
        receiver.answer = always(307, Location=elsewhere.url)
        assert (await outbound.post(receiver.url, b"a", body_bytes_max=10)).status == 307
        assert elsewhere.connections == 0


async def test_a_permit_that_is_refused_sends_nothing(outbound: Outbound, receiver: Receiver) -> None:
    """Asked on the connected socket."""

    def refuse() -> None:
        raise PermitLate("too late")

    with pytest.raises(PermitLate):
        await outbound.post(receiver.url, b"a", body_bytes_max=10, before_write=refuse)
    await asyncio.sleep(0)
    assert receiver.received == []


async def test_a_body_has_a_bound(outbound: Outbound, receiver: Receiver) -> None:
    """A megabyte."""
    with pytest.raises(InvalidOption, match="1000000 are allowed"):
        await outbound.post(receiver.url, bytes(1_000_001), body_bytes_max=10)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254"])
async def test_a_host_of_ours_is_judged_before_a_library_calls_it(host: str) -> None:
    """Private unless it is named; metadata addresses never."""
    async with Outbound(allowed_hosts=[]) as outbound:
        with pytest.raises(CallFailed) as caught:
            await outbound.check_host(host.strip("[]"))
    assert caught.value.reason == "refused_address"
    async with Outbound(allowed_hosts=[], private_hosts=["localhost"]) as outbound:
        await outbound.check_host("localhost")
