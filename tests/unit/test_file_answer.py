"""Files as answers: every wait for the client ends, and its place is free afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from starlette.types import Message

from livewell.server.streams.file_answer import FileAnswer


class Place:
    """A place that somebody may have."""

    taken = False

    @contextmanager
    def take(self) -> Iterator[None]:
        self.taken = True
        try:
            yield
        finally:
            self.taken = False


async def pieces() -> AsyncIterator[bytes]:
    yield b"x" * 200_000


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("stops_at", ["http.response.start", "first piece", "end"])
async def test_a_client_that_stops_reading_loses_its_place(stops_at: str) -> None:
    """Seen failing: the wait for the last piece falls into the end of the answer, which had no bound."""
    place, sent = Place(), []

    async def send(message: Message) -> None:
        sent.append(message)
        is_end = message["type"] == "http.response.body" and not message["more_body"]
        if stops_at == message["type"] or (stops_at == "end" and is_end) or (stops_at == "first piece" and sent[1:]):
            await asyncio.Event().wait()

    answer = FileAnswer(200, {}, pieces(), held=place.take(), send_seconds=0.05)
    async with asyncio.timeout(10):
        await answer({"type": "http", "state": {}}, never, send)

    assert not place.taken


async def test_a_large_piece_is_given_in_slices() -> None:
    """So the bound is for what a slow line can take, and not for a megabyte."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await FileAnswer(200, {}, pieces(), held=Place().take(), send_seconds=1)({"type": "http", "state": {}}, never, send)
    bodies = [one["body"] for one in sent if one["type"] == "http.response.body"]

    assert max(map(len, bodies)) <= 65_536
    assert b"".join(bodies) == b"x" * 200_000
