"""The webhook sink: the conformance suite, its table of verdicts, and what stands in a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest
from standardwebhooks import Webhook

from livewell.errors import ConfigurationError
from livewell.outbox.sink import Verdict
from livewell.outbox.sinks.webhook import answered
from livewell.testing.processes import free_port
from livewell.testing.proxy import TcpProxy
from livewell.testing.sinks import Check, checks
from livewell.testing.sinks.small_relay import made, send
from tests.integration.outbox.labs.parts import KEY, make
from tests.integration.outbox.labs.webhook import WebhookLab
from tests.support.receiver import Receiver, always, hang_up

SIGNED = {"secret": "env:SINK_KEY"}


@pytest.fixture
async def lab() -> AsyncIterator[WebhookLab]:
    async with Receiver() as receiver, TcpProxy("127.0.0.1", receiver.port) as proxy:
        yield WebhookLab(proxy, receiver)


@pytest.mark.parametrize("check", checks("network"), ids=lambda check: check.__name__)
async def test_webhook_conforms(check: Check, lab: WebhookLab) -> None:
    """Every check of the suite that is about a receiver without a login."""
    await check(lab)


@pytest.mark.parametrize(
    ("status", "headers", "verdict", "again"),
    [
        (200, {}, Verdict.DELIVERED, None),
        (204, {}, Verdict.DELIVERED, None),
        (301, {}, Verdict.FAILED, None),
        (400, {}, Verdict.REFUSED, None),
        (401, {}, Verdict.FAILED, None),
        (403, {}, Verdict.FAILED, None),
        (404, {}, Verdict.FAILED, None),
        (408, {}, Verdict.FAILED, None),
        (410, {}, Verdict.REFUSED, None),
        (413, {}, Verdict.REFUSED, None),
        (425, {}, Verdict.FAILED, None),
        (429, {"retry-after": "17"}, Verdict.FAILED, 17.0),
        (429, {}, Verdict.FAILED, None),
        (500, {}, Verdict.FAILED, None),
        (502, {}, Verdict.UNKNOWN, None),
        (503, {"retry-after": "60"}, Verdict.FAILED, 60.0),
        (504, {}, Verdict.UNKNOWN, None),
    ],
)
def test_a_status_has_one_verdict(
    status: int, headers: Mapping[str, str], verdict: Verdict, again: float | None
) -> None:
    """The table at the top of the module."""
    outcome = answered(status, headers)
    assert (outcome.verdict, outcome.again_seconds) == (verdict, again)


async def test_a_request_is_signed_and_carries_the_event(lab: WebhookLab) -> None:
    """The library of the standard accepts it; the id is that of the event, in every attempt."""
    sink, [event] = lab.sink(), made(1)
    lab.receiver.answer = always(503)
    assert (await send(sink, [event])).outcomes[event.id].verdict is Verdict.FAILED
    lab.receiver.answer = always(204)
    await send(sink, [event])
    await sink.close()

    first, second = lab.receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == event.id
    assert Webhook(KEY).verify(second.body, second.headers)["n"] == 0
    assert second.headers["content-type"] == "application/json"
    assert second.headers["ce-subject"] == "order%200%20%C3%BC%25%22x"


async def test_while_a_secret_changes_both_sign(lab: WebhookLab) -> None:
    """A receiver that knows only the old one still believes us."""
    sink = lab.sink(old_secret="env:SINK_KEY")  # noqa: S106 - the name of a variable
    await send(sink, made(1))
    await sink.close()
    signatures = lab.receiver.received[0].headers["webhook-signature"].split(" ")
    assert len(signatures) == 2


async def test_of_one_key_one_request_is_under_way(lab: WebhookLab) -> None:
    """Ten of one lane at a receiver that answers late: never two at once."""
    sink, events = lab.sink(), made(10, lanes_=1)
    lab.slow(0.01)
    told = await send(sink, events)
    await sink.close()
    assert len(told.ids(Verdict.DELIVERED)) == 10
    assert [one.headers["webhook-id"] for one in lab.receiver.received] == [event.id for event in events]


async def test_no_answer_is_unknown_and_not_repeated(lab: WebhookLab) -> None:
    """The receiver read it and hung up."""
    sink, events = lab.sink(), made(2, lanes_=2)
    lab.receiver.answer = hang_up
    told = await send(sink, events)
    await sink.close()
    assert sorted(told.ids(Verdict.UNKNOWN)) == sorted(event.id for event in events)
    assert len(lab.receiver.received) == 2


async def test_an_address_that_may_not_be_called_is_away() -> None:
    """A host that only our own network has; the path, which is secret, is not in the error."""
    sink = make("webhook", f"https://10.0.0.1:{free_port()}/hooks/SECRET-TOKEN", SIGNED)
    told = await send(sink, made(1))
    await sink.close()
    assert told.away is not None
    assert "SECRET-TOKEN" not in f"{told.away}{sink!r}"
    assert told.outcomes == {}


@pytest.mark.parametrize("address", ["nonsense", "ftp://example.com/x", "https://"])
def test_an_address_that_is_none_is_refused_unseen(address: str) -> None:
    """The error names the variable."""
    with pytest.raises(ConfigurationError, match="the variable SINK holds no address") as caught:
        make("webhook", address, SIGNED)
    assert address not in str(caught.value) or address == "https://"
