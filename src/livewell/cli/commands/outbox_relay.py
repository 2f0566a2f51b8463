"""`livewell outbox relay` and `livewell outbox drain`: deliver events, and do nothing else.

relaying ──SIGTERM, SIGINT──▶ what is on its way is settled ──▶ leases given back, exit 0
                                        └──a third signal──▶ gone (130)
draining ──nothing is ready any more, or the time is over──▶ the same end
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from livewell.cli.command import command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo
from livewell.errors import ConfigurationError, DatabaseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from livewell.app import Livewell
    from livewell.outbox.definition import SinkDefinition

_APP = click.argument("target", metavar="[APP]", required=False)
_SINK = click.option("--sink", "only", multiple=True, metavar="NAME", help="Only this sink; may be repeated.")
_IDLE = "SELECT livewell.sink_is_idle(%s)"
_LOOK_SECONDS = 0.2


@command("relay")
@_APP
@_SINK
@click.option("--name", metavar="TEXT", help="What this relay is called (host:pid, if not given).")
def relay(*, target: str | None, only: tuple[str, ...], name: str | None) -> None:
    """Deliver the events of an app's sinks until stopped, and run no jobs.

    APP is module:attribute, for example shop.jobs:app (or LIVEWELL_APP, or app in livewell.toml);
    without one the sinks of the settings. The schema must be up to date: livewell migrate.

    SIGTERM or Ctrl-C: claims nothing more and lets what is on its way be answered.
    """
    _run(target, only, name, _until_stopped)


@command("drain")
@_APP
@_SINK
@click.option("--once", is_flag=True, required=True, help="End when nothing is ready any more.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    default=50,
    show_default=True,
    metavar="N",
    help="At most this long.",
)
@AS_JSON
def drain(*, target: str | None, only: tuple[str, ...], once: bool, seconds: float, as_json: bool) -> None:  # noqa: ARG001 - the flag says what it does
    """Deliver what is ready, then end: for a cron of somebody else's.

    Exit 0, also when the time was over: what is left waits for the next call. What failed and waits
    for its next attempt is not waited for.
    """
    left: list[str] | None = None  # None: it was stopped before it knew

    async def until_idle(app: Livewell, sinks: Sequence[SinkDefinition]) -> None:
        nonlocal left
        left = await _until_idle(app, sinks, seconds)

    _run(target, only, None, until_idle)
    if as_json:
        print_json({"drained": left == [], "left": left})
    elif left is None:
        echo("Stopped before everything that is ready was delivered.")
    elif left:
        echo(f"{seconds:g} s are over; events are still ready for: {', '.join(left)}")
    else:
        echo("Nothing is ready any more.")


def _run(
    target: str | None,
    only: Sequence[str],
    name: str | None,
    drive: Callable[[Livewell, Sequence[SinkDefinition]], Awaitable[None]],
) -> None:
    from livewell.cli.commands.worker import run  # noqa: PLC0415 - heavy
    from livewell.cli.target import chosen_target, load_app  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    settings = Settings.load()
    logs.configure(level=settings.log_level, form=settings.log_format)
    target = chosen_target(target, settings)
    app = load_app(target)
    run(lambda: _deliver(app, _chosen(app, target, only), name, drive))


def _chosen(app: Livewell, target: str, only: Sequence[str]) -> list[SinkDefinition]:
    """The sinks that we can send to; raises ConfigurationError if there is none."""
    sinks = [one for one in app.outbox.definitions(app.settings) if not one.outside]
    names = ", ".join(one.name for one in sinks) or "none"
    unknown = [name for name in only if name not in {one.name for one in sinks}]
    if unknown:
        raise ConfigurationError(f"--sink {unknown[0]}: {target} and the settings declare: {names}")
    if not sinks:
        raise ConfigurationError(
            f"{target} and the settings declare no sink; name the APP that does, or set LIVEWELL_SINKS, see: "
            "livewell docs howto/outbox_operate"
        )
    return [one for one in sinks if not only or one.name in only]


async def _deliver(
    app: Livewell,
    sinks: Sequence[SinkDefinition],
    name: str | None,
    drive: Callable[[Livewell, Sequence[SinkDefinition]], Awaitable[None]],
) -> None:
    import asyncio  # noqa: PLC0415 - heavy

    from livewell.cli.commands.worker import stopper  # noqa: PLC0415 - heavy
    from livewell.db import Listener, embedded  # noqa: PLC0415 - heavy
    from livewell.outbox.nudges import EVENTS  # noqa: PLC0415 - heavy
    from livewell.outbox.relay import Relays  # noqa: PLC0415 - heavy

    async with app:
        settings, database = app.settings, app.database
        relays = Relays(database, sinks, name or f"{socket.gethostname()}:{os.getpid()}")
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopper(relays.stop))
        listener = Listener(
            database.listen_conninfo,
            on_nudge=relays.hear,
            on_reconnect=lambda: relays.hear(EVENTS),
            check_seconds=settings.listen_check_seconds,
            connect_seconds=settings.connect_timeout_seconds,
        )
        async with embedded.kept_alive(settings):
            listening = asyncio.create_task(listener.run())
            running = asyncio.create_task(relays.run())
            driving = asyncio.ensure_future(drive(app, sinks))
            try:
                await asyncio.wait((running, driving), return_when=asyncio.FIRST_COMPLETED)
                relays.stop()
                await running
            finally:
                for task in (listening, driving):
                    task.cancel()
                await asyncio.gather(listening, driving, return_exceptions=True)


async def _until_stopped(app: Livewell, sinks: Sequence[SinkDefinition]) -> None:  # noqa: ARG001 - what _deliver gives
    """A signal ends the relays."""
    import asyncio  # noqa: PLC0415 - heavy

    await asyncio.Event().wait()


async def _until_idle(app: Livewell, sinks: Sequence[SinkDefinition], seconds: float) -> list[str]:
    """Until nothing is ready for any of them, or the time is over; answers for which something may still be."""
    import asyncio  # noqa: PLC0415 - heavy

    end = time.monotonic() + seconds
    busy = [one.name for one in sinks]
    while busy and time.monotonic() < end:
        with suppress(DatabaseError):  # the relays go on when it is back, and so do we
            busy = [one.name for one in sinks if not (await app.database.call(_IDLE, (one.name,)))[0][0]]
        if busy:
            await asyncio.sleep(_LOOK_SECONDS)
    return busy
