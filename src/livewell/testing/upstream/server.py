"""The upstream's process: accept, read, choose, log, answer; again on the same connection.

Nothing is sent before the log has it. What the server must know after a crash (the versions it served, the calls it
admitted, the last number it gave) it reads back from that log; behaviours it forgets.
"""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

from livewell.testing.upstream.answer import Answer, compose
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.call import Call, CallLog, Ending
from livewell.testing.upstream.delivery import Delivery
from livewell.testing.upstream.request import BadRequest, Request, StampedReader, read_request
from livewell.testing.upstream.script import REFUSED, Limit, Script
from livewell.testing.upstream.values import Values

__all__ = ["CONTROL", "Server"]

CONTROL = "/_control"
MALFORMED = Behaviour(name="malformed", status=400, gzip=0)


class Server:
    """What all connections share."""

    def __init__(self, log: CallLog, *, seed: int) -> None:
        self._log = log
        self._script = Script(seed)
        self._values = Values()
        self._number = 0
        self._connection = 0
        for call in log.read():
            self._restore(call)
        log.started()

    def protocol(self) -> asyncio.StreamReaderProtocol:
        """Make the protocol of one connection."""
        return asyncio.StreamReaderProtocol(StampedReader(), self.serve)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests until either side has had enough."""
        if not isinstance(reader, StampedReader):
            raise TypeError
        self._connection += 1
        connection = self._connection
        writer.transport.set_write_buffer_limits(high=0)
        try:
            while await self._serve_one(reader, writer, connection):
                pass
        except asyncio.CancelledError:
            return  # the server stops; the call that was open has been logged
        finally:
            writer.close()

    async def _serve_one(self, reader: StampedReader, writer: asyncio.StreamWriter, connection: int) -> bool:
        try:
            request = await read_request(reader)
        except BadRequest as error:
            behaviour = replace(MALFORMED, message=str(error))
            await self._answer(Request(reader.fed_ns, "", str(error), {}), behaviour, reader, writer, connection)
            return False
        if request is None:
            return False
        if request.path == CONTROL:
            return await self._control(request, writer)
        return await self._answer(request, self._script.choose(request), reader, writer, connection)

    async def _answer(
        self,
        request: Request,
        behaviour: Behaviour,
        reader: StampedReader,
        writer: asyncio.StreamWriter,
        connection: int,
    ) -> bool:
        answer = compose(request, behaviour, self._values)
        self._number += 1
        call = _call(self._number, request, connection, answer, behaviour.name)
        self._log.received(call)
        delivery = Delivery(reader, writer)
        ending: Ending = "stopped"
        try:
            delay = behaviour.delay_seconds + self._script.random.random() * behaviour.delay_jitter_seconds
            ending = await delivery.send(answer, behaviour, delay)
        finally:
            self._log.ended(
                replace(
                    call,
                    ended_ns=time.monotonic_ns() if ending == "stopped" else delivery.ended_ns,
                    ending=ending,
                    wire_bytes=delivery.wire_bytes,
                    body_bytes=delivery.body_bytes,
                    content_bytes=delivery.content_bytes,
                )
            )
        return ending == "answered" and answer.keep_alive and behaviour.fault == "none"

    async def _control(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Take a test's orders; they are in force when the answer is sent, and not in the log."""
        order: dict[str, Any] = json.loads(request.body)
        name = ""
        match order:
            case {"behave": behaviour}:
                name = self._script.add(Behaviour.decode(behaviour))
            case {"limit": limit}:
                self._script.limit = Limit(**limit) if limit else None
            case {"forget": True}:
                self._script.forget()
        data = json.dumps({"name": name}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(data), data))
        await writer.drain()
        return False

    def _restore(self, call: Call) -> None:
        self._number = max(self._number, call.number)
        self._connection = max(self._connection, call.connection)
        for key, version in call.versions.items():
            self._values.restore(key, version)
        if call.behaviour not in (REFUSED, MALFORMED.name):
            self._script.remember(call.credential, call.at_ns)


def _call(number: int, request: Request, connection: int, answer: Answer, behaviour: str) -> Call:
    return Call(
        number=number,
        at_ns=request.at_ns,
        method=request.method,
        path=request.path,
        keys=request.keys,
        credential=request.credential,
        call_id=request.headers.get("x-livewell-call", ""),
        connection=connection,
        status=answer.status,
        behaviour=behaviour,
        versions=answer.versions,
    )
