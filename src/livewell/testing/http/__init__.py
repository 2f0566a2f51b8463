"""One HTTP/1.1 server for every fake.

It reads requests strictly, and sends whatever bytes a fake wants, when it wants.

    bytes ──▶ request.parse ──▶ answer(connection, request), which is the fake's own
                                   ├──connection.write──▶ the whole answer at once, without a task
                                   └──connection.run────▶ a task with a Delivery: late, by drops, half, reset

request      what was asked, parsed strictly and within bounds
connection   one client: requests one after the other, and the primitives write, send, pause, close, reset
delivery     one answer on its way: drops, chunks, cuts, and a count of the bytes that left
server       the listening port, and an end that leaves no task behind
client       one request, for the orders that a fake takes

The fake decides what is answered, and what is written down about it. It may send anything: a wrong
length, half a chunk, a second answer nobody asked for. Nothing here corrects it.
"""

from livewell.testing.http.client import exchange
from livewell.testing.http.connection import ClientLeft, Connection
from livewell.testing.http.delivery import LAST_CHUNK, Delivery, head_lines
from livewell.testing.http.request import BadRequest, Request
from livewell.testing.http.server import HOST, HttpServer

__all__ = [
    "HOST",
    "LAST_CHUNK",
    "BadRequest",
    "ClientLeft",
    "Connection",
    "Delivery",
    "HttpServer",
    "Request",
    "exchange",
    "head_lines",
]
