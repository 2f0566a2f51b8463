"""A lab: one kind of sink, its receiver, and what can go wrong between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from livewell.outbox.sink import Sink
from livewell.testing.proxy import TcpProxy


@dataclass(frozen=True, slots=True)
class Received:
    """One message as the receiver has it, by the fields that every kind can carry."""

    id: str
    payload: str
    key: str | None


class SinkLab(Protocol):
    """What checks ask of a lab.

    secret           a text of the sink's address that must be seen nowhere; "" if it has none
    event_bytes_max  the largest payload that its sinks take; small, so that checks stay cheap
    middle_bytes     so many bytes of answers are a part of those to a batch of 60, on one connection
    mock_repeats_max how many messages of a batch may be there twice because the client library
                     sends again and the receiver, being a mock, does not look whether it has them
    """

    secret: str
    event_bytes_max: int
    middle_bytes: int
    mock_repeats_max: int

    def sink(self) -> Sink:
        """A new sink for the receiver, not yet open."""

    async def received(self) -> list[Received]:
        """Everything that the receiver has, in its order, read past whatever is broken."""

    def stranger(self) -> Sink:
        """A sink whose login the receiver refuses. Asked only of labs that offer "login"."""

    def lose_answers(self) -> None:
        """From now on the receiver's answers are lost, and with them the connection."""

    def cut(self) -> None:
        """Break every connection now."""

    def cut_after(self, answer_bytes: int) -> None:
        """Break each connection when so many more bytes of answers have come, once."""

    def slow(self, seconds: float) -> None:
        """Hold every byte for so long, each way."""

    def freeze(self) -> None:
        """Let nothing pass any more, and tell nobody."""

    def stop(self) -> None:
        """The receiver is down: connections break, new ones are refused."""

    def heal(self) -> None:
        """All is well again."""

    async def until_frozen(self) -> None:
        """Wait until something was really held up."""

    def struck(self) -> int:
        """How many connections were broken so far."""


class ProxiedLab:
    """The part of a lab that is alike for every receiver that is reached by TCP.

    Its sinks go through `proxy`; received() must not.
    """

    secret = ""
    event_bytes_max = 50_000
    middle_bytes = 250
    mock_repeats_max = 0

    def __init__(self, proxy: TcpProxy) -> None:
        self.proxy = proxy

    def lose_answers(self) -> None:
        """The request is served, and its answer never comes."""
        self.proxy.reset_after(0)

    def cut(self) -> None:
        """With RST, as a crashed machine does."""
        self.proxy.reset()

    def cut_after(self, answer_bytes: int) -> None:
        """In the middle of a batch."""
        self.proxy.reset_after(answer_bytes, resets_max=1)

    def slow(self, seconds: float) -> None:
        """A long cable."""
        self.proxy.delay(seconds)

    def freeze(self) -> None:
        """A network that is half open."""
        self.proxy.freeze()

    def stop(self) -> None:
        """Nobody listens."""
        self.proxy.refuse()
        self.proxy.reset()

    def heal(self) -> None:
        """As in the beginning."""
        self.proxy.heal()

    async def until_frozen(self) -> None:
        """Until bytes, or a newcomer, were held up."""
        await self.proxy.until_fired("freeze")

    def struck(self) -> int:
        """As the proxy counted."""
        fired = self.proxy.counts.fired
        return sum(fired.get(verb, 0) for verb in ("cut", "reset", "reset_after"))
