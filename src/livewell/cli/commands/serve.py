"""`livewell serve`: the HTTP server, until told to stop.

It checks the schema and changes nothing.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from livewell.cli.administration import person_here
from livewell.cli.command import command
from livewell.cli.commands.worker import hold_leash, run, settle_memory, stopper
from livewell.cli.output import AS_JSON, print_facts, print_json
from livewell.cli.terminal import echo, has_reader

if TYPE_CHECKING:
    import socket

    from livewell.server.pools import Addresses
    from livewell.settings import Settings

HOST = click.option("--host", "http_host", metavar="ADDRESS", help="Where to listen (LIVEWELL_HTTP_HOST).")
PORT = click.option(
    "--port", "http_port", type=click.IntRange(0, 65535), metavar="N", help="The port; 0: any (LIVEWELL_HTTP_PORT)."
)

PRINT_LINK = click.option(
    "--print-link",
    is_flag=True,
    help="Print the login link also into a pipe, a file or a log. Whoever reads it there may do everything.",
)


@command("serve")
@HOST
@PORT
@PRINT_LINK
@click.option("--leash", is_flag=True, hidden=True, help="Stop when standard input ends: whoever started us is gone.")
@AS_JSON
def serve(*, http_host: str | None, http_port: int | None, print_link: bool, leash: bool, as_json: bool) -> None:
    """Serve the HTTP API and its streams.

    The schema must be up to date: livewell migrate. On the embedded Postgres it prints a link that
    logs a browser in, once, if standard output is a terminal.
    """
    import asyncio  # noqa: PLC0415 - heavy

    from livewell.db import embedded  # noqa: PLC0415 - heavy
    from livewell.db.prepare import database_address, prepare_schema  # noqa: PLC0415 - heavy
    from livewell.server.pools import addresses  # noqa: PLC0415 - heavy
    from livewell.server.serve import bind  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    settings = Settings.load(http_host=http_host, http_port=http_port)
    logs.configure(level=settings.log_level, form=settings.log_format)
    bound = bind(settings.http_host, settings.http_port)
    if settings.database_url is None or settings.roles == "none":
        prepare_schema(database_address(settings), settings, apply=False)
        where = addresses(settings)
    else:
        where = addresses(settings)
        prepare_schema(where.operate, settings, apply=False)
    ready = Serving(settings, where, bound)

    async def until_stopped() -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        async with embedded.kept_alive(settings), serving(ready) as stop:

            def end() -> None:
                stop()
                done.set()

            on_signal = stopper(end)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, on_signal)
            if leash:
                hold_leash(loop, on_signal)
            link = await login_link(settings, ready.base, print_link=print_link)
            say_where(ready.base, link, as_json=as_json)
            await done.wait()

    run(until_stopped)


@dataclass(frozen=True, slots=True)
class Serving:
    """Everything a server needs, before a loop runs."""

    settings: Settings
    where: Addresses
    bound: socket.socket

    @property
    def base(self) -> str:
        """Where it is reached."""
        from livewell.server.serve import address_of  # noqa: PLC0415 - heavy

        return address_of(self.bound)


@asynccontextmanager
async def serving(ready: Serving) -> AsyncIterator[Callable[[], None]]:
    """Serve within the block; yields what stops it.

    At its end everything that was begun has ended, or used up its grace.
    """
    import asyncio  # noqa: PLC0415 - heavy

    from livewell.server.app import create_app, gated  # noqa: PLC0415 - heavy
    from livewell.server.process import ServerProcess  # noqa: PLC0415 - heavy
    from livewell.server.serve import HttpServer  # noqa: PLC0415 - heavy

    async with ServerProcess(ready.where, ready.settings) as state:
        server = HttpServer(gated(create_app(), state), state, ready.bound)
        settle_memory()
        running = asyncio.create_task(server.run(), name="http")
        try:
            yield server.stop
        finally:
            if not state.stopping.is_set():
                server.stop()
            await running


async def login_link(settings: Settings, base: str, *, print_link: bool) -> str | None:
    """A link for the person at this terminal.

    Where there is none, and on another database than the embedded one, `livewell keys login` makes
    it.
    """
    if settings.database_url is not None or not (print_link or has_reader()):
        return None
    from livewell.db import Database  # noqa: PLC0415 - heavy
    from livewell.db.prepare import database_address  # noqa: PLC0415 - heavy
    from livewell.server.auth.login_links import link_address, make_link  # noqa: PLC0415 - heavy

    database = Database(database_address(settings), settings)
    await database.open()
    try:
        return link_address(base, await make_link(database, settings, person=person_here()))
    finally:
        await database.close()


def say_where(base: str, link: str | None, *, as_json: bool) -> None:
    """Print the address, and the login link with its secret.

    Everything else that is printed has its secrets hidden; this link is meant for the reader.
    """
    if as_json:
        print_json({"address": base}, as_is={"login": link})
    else:
        print_facts({"address": base})
        echo(f"log in   {link or other_link(base)}")
    sys.stdout.flush()


def other_link(base: str) -> str:
    """How to get a link."""
    return "with a link from: livewell keys login --address " + base
