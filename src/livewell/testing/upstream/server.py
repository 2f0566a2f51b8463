"""The upstream's process: read, choose, log, answer.

Nothing is sent before the log has it. What the server must know after a crash (the versions it
served, the calls it admitted, the last number it gave) it reads back from that log; behaviours it
forgets.
"""

import asyncio
import json
import time
from dataclasses import replace
from functools import partial
from typing import Any

from livewell.testing.http import BadRequest, Connection, HttpServer, Request, head_lines
from livewell.testing.upstream.answer import Answer, compose
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.call import Call, CallLog, Ending
from livewell.testing.upstream.delivery import AnswerDelivery
from livewell.testing.upstream.request import credential_of, keys_of
from livewell.testing.upstream.script import REFUSED, Limit, Script
from livewell.testing.upstream.values import Values

__all__ = ["CONTROL", "Server"]

CONTROL = "/_control"
BODY_BYTES_MAX = 1_048_576  # of an order
MALFORMED = Behaviour(name="malformed", status=400, gzip=0)


class Server:
    """What all connections share.

    Its transports hold nothing back: a byte that was counted is one the kernel has.
    """

    def __init__(self, log: CallLog, *, seed: int) -> None:
        self.http = HttpServer(self._choose, refuse=self._refuse, body_bytes_max=BODY_BYTES_MAX, unsent_bytes_max=0)
        self._log = log
        self._script = Script(seed)
        self._values = Values()
        self._number = 0
        for call in log.read():
            self._restore(call)
        log.started()

    def _choose(self, connection: Connection, request: Request) -> None:
        if request.path == CONTROL:
            self._control(connection, request)
        else:
            self._answer(connection, request, self._script.choose(request))

    def _refuse(self, connection: Connection, error: BadRequest) -> None:
        """Log what was no request as a call with status 400, and close the connection."""
        request = Request(error.at_ns, "", str(error), {}, keep_alive=False)
        self._answer(connection, request, replace(MALFORMED, message=str(error)))

    def _answer(self, connection: Connection, request: Request, behaviour: Behaviour) -> None:
        answer = compose(request, behaviour, self._values)
        self._number += 1
        call = _call(self._number, request, connection.number, answer, behaviour.name)
        self._log.received(call)
        delivery = AnswerDelivery(connection)
        delay = behaviour.delay_seconds + self._script.random.random() * behaviour.delay_jitter_seconds
        keeps = answer.keep_alive and behaviour.fault == "none"
        connection.run(
            delivery.send(answer, behaviour, delay), partial(self._ended, connection, call, delivery, keeps=keeps)
        )

    def _ended(
        self, connection: Connection, call: Call, delivery: AnswerDelivery, task: asyncio.Task[Ending], *, keeps: bool
    ) -> None:
        """Write down how it ended; a task that was cancelled, or failed, is a server that stops."""
        ending: Ending = "stopped" if task.cancelled() or task.exception() is not None else task.result()
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
        if not (ending == "answered" and keeps):
            connection.close()
        if not task.cancelled():
            task.result()  # a failure is a mistake of ours, and is told by the event loop

    def _control(self, connection: Connection, request: Request) -> None:
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
        headers = [("Content-Length", str(len(data))), ("Connection", "close")]
        connection.write(head_lines(200, headers) + b"\r\n" + data)
        connection.close()

    def _restore(self, call: Call) -> None:
        self._number = max(self._number, call.number)
        self.http.accepted = max(self.http.accepted, call.connection)
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
        keys=keys_of(request),
        credential=credential_of(request),
        call_id=request.headers.get("x-livewell-call", ""),
        connection=connection,
        status=answer.status,
        behaviour=behaviour,
        versions=answer.versions,
    )
