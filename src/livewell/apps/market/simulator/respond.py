"""How answers leave: at once, or in a task of their own.

    request ──▶ decided ──▶ logged ──▶ whole answer handed over at once
                               └──▶ a task (latency, drip, silence, a body of gigabytes) ──▶ its end is logged

An ordinary answer is made, logged and written inside data_received, without a task: benchmarks make
thousands of calls a second.
"""

import asyncio
import time
from functools import partial

import orjson

from livewell.apps.market.simulator.answer import Answer, bomb, head, huge_pieces, refusal
from livewell.apps.market.simulator.request import ApiRequest, read
from livewell.apps.market.simulator.server import Server
from livewell.testing.http import LAST_CHUNK, BadRequest, ClientLeft, Connection, Delivery, HttpServer, Request

__all__ = ["Responder"]

HEAD_BYTES_MAX = 16_384  # a batch of five hundred symbols stands in the head
MALFORMED = ApiRequest("", "", {}, "", gzip=False, keep_alive=False, call_id="", if_none_match="")


class Responder:
    """The simulator's side of its connections."""

    def __init__(self, server: Server) -> None:
        self.http = HttpServer(self._answer, refuse=self._refuse, head_bytes_max=HEAD_BYTES_MAX)
        self._server = server

    def _answer(self, connection: Connection, request: Request) -> None:
        if request.path.startswith("/_"):
            self._order(connection, request)
            return
        server, asked = self._server, read(request)
        wall = server.wall()
        answer, symbols = server.policy.decide(asked, request.at_ns, wall)
        self._respond(connection, asked, answer, symbols, at_ns=request.at_ns, wall=wall)

    def _refuse(self, connection: Connection, error: BadRequest) -> None:
        if not connection.left_ns:
            answer = refusal("malformed", "malformed")
            self._respond(connection, MALFORMED, answer, (), at_ns=error.at_ns, wall=self._server.wall())

    def _respond(
        self,
        connection: Connection,
        request: ApiRequest,
        answer: Answer,
        symbols: tuple[str, ...],
        *,
        at_ns: int,
        wall: float,
    ) -> None:
        server = self._server
        knobs = server.policy.knobs
        delay = knobs.latency_seconds
        if knobs.latency_jitter_seconds:
            delay += server.random.random() * knobs.latency_jitter_seconds
        if answer.delivery == "whole" and not delay:
            body, packed = answer.content(accepts_gzip=request.gzip)
            data = head(answer, len(body), packed=packed, keep_alive=request.keep_alive) + body
            server.received(request, symbols, answer, at_ns=at_ns, wall=wall, sent_bytes=len(data))
            connection.write(data)
            if not request.keep_alive:
                connection.close()
            return
        number = server.received(request, symbols, answer, at_ns=at_ns, wall=wall, sent_bytes=None)
        delivery = Delivery(connection)
        connection.run(
            self._deliver(delivery, request, answer, delay), partial(self._ended, connection, delivery, number, request)
        )

    def _order(self, connection: Connection, request: Request) -> None:
        status, figures = (403, {"error": "orders come from this machine"})
        if connection.peer.startswith(("127.", "::1")):
            status, figures = self._server.order(request)
        body = orjson.dumps(figures)
        answer = Answer("order", status, body, "")
        connection.write(head(answer, len(body), packed=False, keep_alive=request.keep_alive) + body)
        if not request.keep_alive:
            connection.close()

    # ── slow and broken answers ──

    async def _deliver(self, delivery: Delivery, request: ApiRequest, answer: Answer, delay: float) -> str:
        """Send an answer the way its fault wants, and say what became of it."""
        try:
            if delay:
                await delivery.pause(delay)
            return await self._send(delivery, request, answer)
        except ClientLeft:
            return "client_left"

    def _ended(
        self, connection: Connection, delivery: Delivery, number: int, request: ApiRequest, task: asyncio.Task[str]
    ) -> None:
        """Write down how it ended, also when it was cancelled before its first step."""
        if task.cancelled():
            how = "client_left" if connection.left_ns else "stopped"
        else:
            how = task.result() if task.exception() is None else f"failed: {task.exception()!r}"
        ended_ns = delivery.ended_ns if how == "sent" else time.monotonic_ns()
        self._server.ended(number, request.credential, how, delivery.sent_bytes, ended_ns)
        if how != "sent" or not request.keep_alive:
            connection.close()

    async def _send(self, delivery: Delivery, request: ApiRequest, answer: Answer) -> str:
        knobs = self._server.policy.knobs
        match answer.delivery:
            case "hang":
                await delivery.hang()
                return "cut"
            case "reset" | "closed":
                return _cut(delivery, reset=answer.delivery == "reset")
            case "huge":
                await delivery.send(head(answer, None, packed=False, keep_alive=request.keep_alive))
                for piece in huge_pieces(knobs.huge_bytes):
                    await delivery.send_body(piece, chunked=True)
                await delivery.send(LAST_CHUNK)
                return "sent"
        body, packed = answer.content(accepts_gzip=request.gzip)
        if answer.delivery == "bomb":
            body, packed = bomb(knobs.bomb_bytes), True
        first = head(answer, len(body), packed=packed, keep_alive=request.keep_alive)
        if answer.delivery in ("cut_off", "reset_in_body"):
            await delivery.send(first + body[: len(body) // 2])
            return _cut(delivery, reset=answer.delivery == "reset_in_body")
        if answer.delivery == "drip":
            await delivery.send(first)
            await delivery.send_body(body, bytes_per_second=knobs.drip_bytes_per_second)
        else:
            await delivery.send(first + body)
        return "sent"


def _cut(delivery: Delivery, *, reset: bool) -> str:
    delivery.cut(reset=reset)
    return "cut"
