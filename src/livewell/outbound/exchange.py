"""What aiohttp is made to do at the socket: count every byte, ask before the request leaves, send it once.

    connection free ──▶ before_write() ──▶ request written ──▶ bytes counted as they come ──▶ answer
                            └──raises──▶ nothing was written      └──over the cap──▶ connection ended

Three seams of aiohttp 3.14 are used: the request class (public), the protocol of a connection (MeteredProtocol stands in
for it in the connector's factory) and the session's switch for silent retries. aiohttp re-sends a GET on its own when a
kept-alive connection turns out to be dead; a permit allows one request, so Request.send refuses a second one even if
that switch were lost in some later version.
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

from livewell.outbound.guard import Guard

__all__ = ["CALL", "Call", "Connector", "MeteredProtocol", "Request", "StaleConnection"]

HEAD_BYTES_MAX = 65_536  # status line, headers and the framing of chunks, on top of the body's own bound


@dataclass(slots=True)
class Call:
    """One call under way: what may still happen to it, and what has."""

    body_bytes_max: int
    before_write: Callable[[], None] | None = field(repr=False)
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


CALL: ContextVar[Call] = ContextVar("livewell_outbound_call")


class MeteredProtocol(ResponseHandler):
    """aiohttp's side of a connection, with a counter before the parser."""

    call: Call | None = None

    def data_received(self, data: bytes) -> None:
        """Count, and end the connection when it is too much; the parser sees nothing of the excess."""
        call = self.call
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
    """Has anything come on a kept connection since its last answer? An end, or bytes that would be taken for the next answer.

    What the event loop has not read yet counts too: a server that closes after its answer is otherwise noticed one
    request too late. A new connection is not asked (TLS sends tickets on it unasked).
    """
    if protocol.should_close or not protocol.is_connected() or protocol.transport is None:
        return True
    if protocol.call is None:
        return False
    poll = select.poll()
    poll.register(protocol.transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


class Request(aiohttp.ClientRequest):
    """A request that asks before it goes, and goes once."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        """Write the request, if it may be written."""
        call, protocol = CALL.get(), conn.protocol
        if not isinstance(protocol, MeteredProtocol):
            raise TypeError("livewell.outbound: this version of aiohttp makes its connections in another way")
        if call.sent:
            raise aiohttp.ServerDisconnectedError
        if _is_stale(protocol):
            raise StaleConnection
        protocol.call = call
        if call.before_write is not None:
            try:
                call.before_write()
            except BaseException as error:
                call.refusal = error
                raise
        call.sent = True
        return await super().send(conn)


class Connector(aiohttp.TCPConnector):
    """Connections to checked addresses only, each with its counter."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(resolver=guard, use_dns_cache=False, socket_factory=guard.open_socket, **options)
        make = functools.partial(MeteredProtocol, loop=self._loop)
        self._factory = cast("functools.partial[ResponseHandler]", make)  # mypy's partial is invariant
