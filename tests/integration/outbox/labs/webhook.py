"""A real HTTP server with a log of its own."""

from __future__ import annotations

from urllib.parse import unquote

from livewell.outbox.sink import Sink
from livewell.testing.proxy import TcpProxy
from livewell.testing.sinks import ProxiedLab, Received
from tests.integration.outbox.labs.parts import make
from tests.support.receiver import Receiver


class WebhookLab(ProxiedLab):
    """The receiver's path is its secret."""

    secret = "SECRET-TOKEN"  # noqa: S105 - the path of the receiver
    middle_bytes = 20  # a connection carries one answer

    def __init__(self, proxy: TcpProxy, receiver: Receiver) -> None:
        super().__init__(proxy)
        self.receiver = receiver

    def sink(self, **options: object) -> Sink:
        """To the receiver, through the proxy."""
        given = {"secret": "env:SINK_KEY", "answer_seconds": 2.0, "event_bytes_max": self.event_bytes_max}
        return make("webhook", f"http://127.0.0.1:{self.proxy.port}/hooks/{self.secret}", {**given, **options})

    def stranger(self) -> Sink:
        """A webhook has no login."""
        raise NotImplementedError

    async def received(self) -> list[Received]:
        """What it has read, whether or not it could answer."""
        return [
            Received(one.headers["webhook-id"], one.body.decode(), unquote(one.headers["ce-subject"]))
            for one in self.receiver.received
        ]
