"""Which question does an answer answer?

HTTP/1.1 does not say, so a connection is shared only where no answer can be mistaken (R14, GU1).
"""

import asyncio

import pytest

from livewell.outbound import Outbound
from livewell.outbound.exchange import SUBJECTS_MAX
from livewell.testing import FakeUpstream
from livewell.testing.processes import eventually_async
from tests.integration.outbound.hostile import HostileServer, Visit, answering
from tests.integration.outbound.support import BODY_BYTES_MAX, LOCAL, about

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%s"


async def connections_of(outbound: Outbound, server: HostileServer | FakeUpstream, *shares: object) -> list[bool]:
    """Ask one after another; for each whether its connection was new."""
    answers = [await outbound.get(server.url, body_bytes_max=BODY_BYTES_MAX, share=share) for share in shares]  # type: ignore[arg-type]  # Share or None
    return [answer.alone for answer in answers]


async def faithful(visit: Visit) -> None:
    """Answer everything, keep the connection."""
    while await visit.request():
        await visit.send(ANSWER % b"right")


async def test_connections_are_kept_for_other_subjects_of_the_same_family(outbound: Outbound) -> None:
    """Ten calls one after another share a connection."""
    async with HostileServer(faithful) as server:
        alone = await connections_of(outbound, server, *(about(f"K{number}") for number in range(10)))

    assert (alone, server.connections) == ([True] + [False] * 9, 1)


async def test_a_subject_never_comes_twice_on_a_connection(outbound: Outbound) -> None:
    """A late copy of its own earlier answer would make an old value look checked just now."""
    async with HostileServer(faithful) as server:
        alone = await connections_of(outbound, server, about("A"), about("B"), about("C", "A"), about("B"))

    assert (alone, server.connections) == ([True, False, True, False], 2)


async def test_families_do_not_meet_on_a_connection(outbound: Outbound) -> None:
    """Annual and quarterly statements of one company repeat the same key."""
    annual, quarterly = about("A", family="annual"), about("A", family="quarterly")
    async with HostileServer(faithful) as server:
        alone = await connections_of(outbound, server, annual, quarterly)

    assert (alone, server.connections) == ([True, True], 2)


async def test_without_a_family_every_call_has_its_own_connection(outbound: Outbound) -> None:
    """Webhooks, samples and health checks; and none of them is left open."""
    async with HostileServer(faithful) as server:
        alone = await connections_of(outbound, server, None, about("A"), None, None)
        await server.closed(3)

    assert (alone, server.connections) == ([True] * 4, 4)


async def test_what_a_connection_remembers_is_bounded(outbound: Outbound) -> None:
    """It is closed, not forgotten."""
    full = about(*(f"K{number}" for number in range(SUBJECTS_MAX)))
    async with HostileServer(faithful) as server:
        alone = await connections_of(outbound, server, full, about("A"), about("B"))

    assert alone == [True, True, False]


async def test_connections_are_bounded_by_families_and_calls_at_once(upstream: FakeUpstream) -> None:
    """Thirty families, four calls at once in each, several rounds.

    Never more than 120 connections, and idle ones are closed.
    """
    async with Outbound(allowed_hosts=[], private_hosts=LOCAL, keepalive_seconds=0.2) as client:
        for number in range(3):
            for family in range(30):
                await asyncio.gather(
                    *(
                        client.get(
                            f"{upstream.url}/quote?symbol=A",
                            body_bytes_max=BODY_BYTES_MAX,
                            share=about(f"K{number}.{call}", family=f"f{family}"),
                        )
                        for call in range(4)
                    )
                )
        connector = client._sessions[True].connector
        assert connector is not None
        assert sum(map(len, connector._conns.values())) <= 120
        await eventually_async(lambda: not connector._conns)


async def test_bytes_on_an_idle_connection_end_it(outbound: Outbound) -> None:
    """Nothing was asked, so nothing may come.

    Not noticed only when it is used again (0.5.0 kept it open).
    """

    async def serve(visit: Visit) -> None:
        if await visit.request():
            await visit.send(ANSWER % b"first", pause_seconds=0.05)
            await visit.send(ANSWER % b"wrong")
            await visit.gone()

    async with HostileServer(serve) as server:
        first = await outbound.get(server.url, body_bytes_max=100, share=about("A"))
        await server.closed(1)
        second = await outbound.get(server.url, body_bytes_max=100, share=about("B"))

    assert (first.body, second.body, server.connections) == (b"first", b"first", 2)


@pytest.mark.parametrize("together", [True, False])
async def test_an_answer_nobody_asked_for_is_never_taken_for_the_next_one(outbound: Outbound, together: bool) -> None:
    """A server out of step sends a second answer, at once or a little later.

    The next call has a new connection (seen to fail with the check removed).
    """

    async def serve(visit: Visit) -> None:
        if await visit.request():
            if together:
                await visit.send(ANSWER % b"first" + ANSWER % b"wrong")
            else:
                await visit.send(ANSWER % b"first", pause_seconds=0.05)
                await visit.send(ANSWER % b"wrong")
            server.sent.set()
            if await visit.request():
                await visit.send(ANSWER % b"right")

    async with HostileServer(serve) as server:
        first = await outbound.get(server.url, body_bytes_max=100, share=about("A"))
        await server.sent.wait()
        second = await outbound.get(server.url, body_bytes_max=100, share=about("B"))

    assert (first.body, second.body, server.connections) == (b"first", b"first", 2)


async def test_an_answer_held_back_until_the_next_question_is_known_as_not_alone(outbound: Outbound) -> None:
    """No client can tell it from the true one.

    So the caller learns that the connection had carried another question, and can retire it.
    """

    async def serve(visit: Visit) -> None:
        if await visit.request():
            await visit.send(ANSWER % b"first")
            if await visit.request():
                await visit.send(ANSWER % b"first")
                await visit.gone()

    async with HostileServer(serve) as server:
        first = await outbound.get(server.url, body_bytes_max=100, share=about("A"))
        second = await outbound.get(server.url, body_bytes_max=100, share=about("B"))
        second.retire()
        await server.closed(1)
        third = await outbound.get(server.url, body_bytes_max=100, share=about("C"))

    assert (first.alone, second.alone, third.alone) == (True, False, True)


@pytest.mark.parametrize("status", [204, 304, 404, 500])
async def test_after_an_answer_without_rows_nothing_more_is_asked_on_a_connection(
    outbound: Outbound, upstream: FakeUpstream, status: int
) -> None:
    """It says nothing of what it answers, so it may have been out of step already."""
    await upstream.behave(status=status)

    alone = await connections_of(outbound, upstream, about("A"), about("B"), about("C"))

    assert alone == [True, True, True]


async def test_a_connection_that_the_server_closed_is_passed_over(outbound: Outbound) -> None:
    """Fifty calls in a row to a server that promises to keep the connection and does not.

    None fails.
    """
    async with HostileServer(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")) as server:
        for number in range(1, 51):
            await outbound.get(server.url, body_bytes_max=100, share=about(f"K{number}"))
            await server.closed(number)

    assert (len(server.requests), server.connections) == (50, 50)
