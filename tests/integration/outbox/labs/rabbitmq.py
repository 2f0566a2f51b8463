"""A RabbitMQ of our own, from Debian's package: its ports, name, cookie and data in a folder of the test.

Nothing of an installed broker is touched, and none is asked: the node has no distribution port that
others know, and listens on the loopback alone.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from livewell.outbox.sink import Sink
from livewell.testing.processes import ChildProcess, eventually, free_port
from livewell.testing.proxy import TcpProxy
from livewell.testing.sinks import ProxiedLab, Received
from tests.integration.outbox.labs.parts import PASSWORD, WRONG, make, program

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_SECONDS_MAX = 120


@contextmanager
def rabbit_server(folder: Path) -> Iterator[int]:
    """A broker of our own; gives its port. Skipped, loudly, where the package is not installed."""
    if not SERVER.exists():
        pytest.skip("NO RABBITMQ: its sink is not tested; install it with: apt-get install rabbitmq-server")
    port, distribution, names = free_port(), free_port(), str(free_port())
    user = _account(folder)
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\ndefault_user = relay\ndefault_pass = {PASSWORD}\n"
        "loopback_users = none\nlog.console = true\nlog.file = false\n"
    )
    (folder / "enabled_plugins").write_text("[].\n")
    (folder / ".erlang.cookie").write_text(uuid.uuid4().hex)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o700 if path.is_dir() else 0o400 if path.name == ".erlang.cookie" else 0o600)
        if user is not None:
            shutil.chown(path, user)
    environment = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"livewell-{uuid.uuid4().hex[:12]}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution),
        "ERL_EPMD_PORT": names,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
    }
    epmd = program("epmd")
    if epmd is None:
        pytest.skip("NO EPMD: RabbitMQ's sink is not tested; install it with: apt-get install rabbitmq-server")
    # The broker would start one that outlives it; it finds ours, which ends with the test.
    with (
        ChildProcess(["-port", names, "-address", "127.0.0.1"], program=epmd, user=user, cwd=folder),
        ExitStack() as more,
    ):
        eventually(lambda: _listens(int(names)), what="epmd listens")
        child = more.enter_context(ChildProcess([], program=SERVER, env=environment, user=user, cwd=folder))
        child.wait_for("Server startup complete", timeout=START_SECONDS_MAX)
        yield port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _account(folder: Path) -> str | None:
    """The package's own account where we are root: it must be able to reach the folder."""
    if os.getuid() != 0:
        return None
    try:
        pwd.getpwnam("rabbitmq")
    except KeyError:
        pytest.skip("NO ACCOUNT rabbitmq: its sink is not tested; install it with: apt-get install rabbitmq-server")
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o001:
            pytest.skip(f"{parent} cannot be entered by rabbitmq: its sink is not tested; choose another TMPDIR")
    return "rabbitmq"


class RabbitLab(ProxiedLab):
    """One queue, bound to the topic exchange."""

    secret = PASSWORD

    def __init__(self, proxy: TcpProxy, port: int) -> None:
        super().__init__(proxy)
        self.queue = f"t{uuid.uuid4().hex}"
        self.direct = f"amqp://relay:{PASSWORD}@127.0.0.1:{port}/"

    async def make_queue(self, **arguments: object) -> None:
        """Durable, so that persistent messages are really written."""
        connection = await aio_pika.connect(self.direct)
        channel = await connection.channel()
        given: Any = arguments
        queue = await channel.declare_queue(self.queue, durable=True, arguments=given)
        await queue.bind("amq.topic", f"{self.queue}.#")
        await connection.close()

    def sink(self, *, password: str = PASSWORD, **options: object) -> Sink:
        """Through the proxy."""
        given: dict[str, object] = {
            "prefix": f"{self.queue}.",
            "event_bytes_max": self.event_bytes_max,
            "answer_seconds": 3.0,
            "connect_seconds": 3.0,
            **options,
        }
        return make("rabbitmq", f"amqp://relay:{password}@127.0.0.1:{self.proxy.port}/", given)

    def stranger(self) -> Sink:
        """With a wrong password."""
        return self.sink(password=WRONG)

    async def received(self) -> list[Received]:
        """Everything in the queue; it is put back in its order when the connection ends."""
        connection = await aio_pika.connect(self.direct)
        channel = await connection.channel()
        queue = await channel.get_queue(self.queue)
        found: list[Received] = []
        while (message := await queue.get(fail=False)) is not None:
            key = message.headers.get("cloudEvents_subject")
            found.append(Received(str(message.message_id), message.body.decode(), None if key is None else str(key)))
        await connection.close()
        return found
