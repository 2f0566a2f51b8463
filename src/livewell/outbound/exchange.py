"""What aiohttp is made to do at the socket.

It counts every byte, asks before the request leaves, sends it once, and keeps questions apart.

    connection free ──▶ before_write() ──▶ request written ──▶ bytes counted as they come ──▶ answer
                            └──raises──▶ nothing was written      └──over the cap──▶ connection ended

HTTP/1.1 does not say which question an answer answers. A server that sends one answer too many
shifts every later answer of that connection by one. So a call has a connection of its own, unless
it states what it asks (Share): calls of one family may follow each other on a connection, as long
as no subject comes twice. ADR 0011 says what the caller may then believe.

Four seams of aiohttp 3.14 are used: the request class (public) with its connection key, the
protocol of a connection (MeteredProtocol stands in for it in the connector's factory) and the
session's switch for silent retries. aiohttp re-sends a GET on its own when a kept-alive connection
turns out to be dead; a permit allows one request, so Request.send refuses a second one even if that
switch were lost in some later version.
"""

import functools
import select
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey

from livewell.outbound.guard import Guard

__all__ = ["CALL", "Call", "Connector", "MeteredProtocol", "Request", "Share", "StaleConnection"]

HEAD_BYTES_MAX = 65_536  # status line, headers and the framing of chunks, on top of the body's own bound
SUBJECTS_MAX = 1_000  # that one connection remembers; then it is closed


@dataclass(frozen=True, slots=True)
class Share:
    """What a call asks, as far as its connection must know.

    An answer about one of the subjects can only be this call's.
    """

    family: str  # all of the question but its subjects: calls of one family may share a connection
    subjects: frozenset[str]  # no connection is asked about one of them twice


@dataclass(slots=True)
class Call:
    """One call under way: what may still happen to it, and what has."""

    body_bytes_max: int
    before_write: Callable[[], None] | None = field(repr=False)
    share: Share | None = None  # None: on a connection of its own
    protocol: "MeteredProtocol | None" = field(default=None, repr=False)  # the connection that it was written to
    alone: bool = True  # that connection had carried no other question
    started: float = field(default_factory=time.monotonic)
    wire_bytes: int = 0
    over: bool = False  # more came than wire_bytes_max
    sent: bool = False
    refusal: BaseException | None = None  # what before_write raised
    status: int | None = None  # of the head, once it is there
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def wire_bytes_max(self) -> int:
        """What may come at most, in all."""
        return self.body_bytes_max + HEAD_BYTES_MAX

    def ended(self) -> None:
        """The answer is whole, or given up.

        From now on nothing may come on the connection, unless another call has it.
        """
        if self.protocol is not None and self.protocol.call is self:
            self.protocol.call = None
            if self.protocol.should_close:
                self.protocol.close()

    def retire(self) -> None:
        """Ask nothing more on the connection.

        Closed at once if it is idle, otherwise after the answer that is under way.
        """
        if self.protocol is not None:
            self.protocol.force_close()
            if self.protocol.call is None:
                self.protocol.close()


CALL: ContextVar[Call] = ContextVar("livewell_outbound_call")


class MeteredProtocol(ResponseHandler):
    """aiohttp's side of a connection, with a counter before the parser."""

    call: Call | None = None  # under way
    asked = 0  # questions so far
    family: str | None = None
    subjects: frozenset[str] = frozenset()

    def may_carry(self, share: Share | None) -> bool:
        """Could no answer to an earlier question on this connection be taken for the answer to this one?"""
        if self.asked == 0:
            return True
        return (
            share is not None
            and share.family == self.family
            and len(self.subjects) < SUBJECTS_MAX
            and self.subjects.isdisjoint(share.subjects)
        )

    def carry(self, call: Call) -> None:
        """A question goes out on this connection."""
        call.protocol, call.alone = self, self.asked == 0
        self.call = call
        self.asked += 1
        if call.share is None:
            self.force_close()  # after its answer
        else:
            self.family = call.share.family
            self.subjects |= call.share.subjects

    def data_received(self, data: bytes) -> None:
        """Count, and end the connection when it is too much, or when nothing was asked.

        The parser sees nothing of the excess.
        """
        call = self.call
        if call is None and self.asked and self.transport is not None:
            self.transport.abort()
            return
        if call is not None:
            call.wire_bytes += len(data)
            if call.wire_bytes > call.wire_bytes_max:
                call.over = True
                if self.transport is not None:
                    self.transport.abort()
                return
        super().data_received(data)


class StaleConnection(Exception):
    """A kept connection cannot be used any more; nothing was sent, so another one may be taken."""


def _is_stale(protocol: MeteredProtocol) -> bool:
    """Has anything come on a kept connection since its last answer?

    An end, or bytes that would be taken for the next answer.

    What the event loop has not read yet counts too: a server that closes after its answer is
    otherwise noticed one request too late. A new connection is not asked (TLS sends tickets on it
    unasked).
    """
    if protocol.should_close or not protocol.is_connected() or protocol.transport is None:
        return True
    if protocol.asked == 0:
        return False
    poll = select.poll()
    poll.register(protocol.transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


class Request(aiohttp.ClientRequest):
    """A request that asks before it goes, and goes once."""

    @property
    def connection_key(self) -> ConnectionKey:
        """Which kept connections may carry it: those of its family.

        Hashes may collide, so send() compares the names.
        """
        share = CALL.get().share
        return super().connection_key._replace(proxy_headers_hash=None if share is None else hash(share.family))

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        """Write the request, if it may be written."""
        call, protocol = CALL.get(), conn.protocol
        if not isinstance(protocol, MeteredProtocol):
            raise TypeError("livewell.outbound: this version of aiohttp makes its connections in another way")
        if call.sent:
            raise aiohttp.ServerDisconnectedError
        if _is_stale(protocol) or not protocol.may_carry(call.share):
            raise StaleConnection
        if call.before_write is not None:
            try:
                call.before_write()
            except BaseException as error:
                call.refusal = error
                raise
        call.sent = True
        protocol.carry(call)
        return await super().send(conn)


class Connector(aiohttp.TCPConnector):
    """Connections to checked addresses only, each with its counter."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(resolver=guard, use_dns_cache=False, socket_factory=guard.open_socket, **options)
        make = functools.partial(MeteredProtocol, loop=self._loop)
        self._factory = cast("functools.partial[ResponseHandler]", make)  # mypy's partial is invariant
