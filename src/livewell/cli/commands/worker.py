"""`livewell worker`: run the tasks of an app until told to stop.

working ──SIGTERM, SIGINT──▶ finishing what runs ──again──▶ handing it back at once ──again──▶ gone (130)
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.command import INTERRUPTED, OK, PROBLEM, command, say
from livewell.cli.terminal import echo
from livewell.errors import ConfigurationError, LivewellError
from livewell.refresh.queues import ALL_QUEUES, queue_name

if TYPE_CHECKING:
    import asyncio

    from livewell.app import Livewell
    from livewell.queue.worker.worker import Worker

RELEASE_SECONDS = 12.0  # after the grace: handlers are cancelled, results sent, the lease given back, each bounded

APP = click.argument("target", metavar="[APP]", required=False)
QUEUES = click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help=f"Work only this queue; may be repeated. {ALL_QUEUES} stands for all refreshes, "
    f"{queue_name('fmp', 'slow')} for one pool.",
)
SLOTS = click.option(
    "--slots", type=click.IntRange(1, 1000), metavar="N", help="Jobs at once per process (LIVEWELL_WORKER_SLOTS)."
)


@command("worker")
@APP
@QUEUES
@SLOTS
@click.option(
    "--processes",
    type=click.IntRange(1, 100),
    default=1,
    metavar="N",
    help="Worker processes; one that dies is started again.",
)
@click.option("--name", metavar="TEXT", help="What `livewell queues workers` calls it (host:pid, if not given).")
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve this worker's metrics there (LIVEWELL_METRICS_ADDRESS); with --processes each next one at the "
    "next port.",
)
@click.option("--leash", is_flag=True, hidden=True, help="Stop when standard input ends: whoever started us is gone.")
@click.pass_context
def worker(
    ctx: click.Context,
    *,
    target: str | None,
    queues: tuple[str, ...],
    slots: int | None,
    processes: int,
    name: str | None,
    metrics: str | None,
    leash: bool,
) -> None:
    """Run an app's tasks until stopped, and refresh what is watched.

    APP is module:attribute, for example shop.jobs:app (or LIVEWELL_APP, or app in livewell.toml);
    without one only refreshes are done. The schema must be up to date: livewell migrate.

    SIGTERM or Ctrl-C: claims nothing more and lets running jobs finish (LIVEWELL_GRACE_SECONDS).
    Once more: hands them back at once. A third time: ends on the spot.
    """
    from livewell.cli.target import chosen_target, load_app  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    settings = Settings.load(metrics_address=metrics)
    metrics = settings.metrics_address
    logs.configure(level=settings.log_level, form=settings.log_format)
    target = chosen_target(target, settings)
    app = load_app(target)
    check_queues(app, target, queues)
    if processes > 1:
        ctx.exit(_supervise(app, target, queues=queues, slots=slots, processes=processes, name=name, metrics=metrics))
    run(lambda: work(app, queues=queues, slots=slots, name=name, leash=leash, metrics=metrics))


def check_queues(app: Livewell, target: str, queues: Sequence[str]) -> None:
    """A misspelt queue would make a worker that idles for ever."""
    from livewell.capability import capabilities  # noqa: PLC0415 - heavy

    known = sorted({definition.policy.queue for definition in app.tasks.values()})
    offered = tuple(queue.removesuffix("*") for one in capabilities() for queue in one.queues)
    for queue in queues:
        # A type may be applied later, so any queue of refreshes will do; a beginning and a star
        # stand for many.
        if queue not in known and not queue.startswith(offered):
            raise ConfigurationError(
                f"--queue {queue}: no task of {target} uses it; its queues are: {', '.join(known)}"
            )


async def work(
    app: Livewell,
    *,
    queues: Sequence[str] = (),
    slots: int | None = None,
    name: str | None = None,
    leash: bool = False,
    metrics: str | None = None,
    beside: Callable[[], None] | None = None,
) -> None:
    """Open the app and be a worker until a signal says stop.

    One that comes while still opening ends it there. beside: what else a signal stops. metrics:
    where to serve them.
    """
    import asyncio  # noqa: PLC0415 - heavy

    import structlog  # noqa: PLC0415 - heavy

    from livewell.db import embedded  # noqa: PLC0415 - heavy
    from livewell.operations.endpoint import metrics_endpoint  # noqa: PLC0415 - heavy

    loop = asyncio.get_running_loop()
    opening = asyncio.current_task()
    worker: Worker | None = None

    def end() -> None:
        loop.call_later(app.settings.grace_seconds + RELEASE_SECONDS, _give_up)
        if beside is not None:
            beside()
        if worker is not None:
            worker.stop()
        elif opening is not None:
            opening.cancel()

    stop = stopper(end)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if leash:
        hold_leash(loop, stop)
    try:
        await app.open()
        settle_memory()
        async with embedded.kept_alive(app.settings), metrics_endpoint(metrics) as address:
            if address is not None:
                structlog.get_logger("livewell.worker").info("metrics are served", address=address)
            # Made last: a signal that came between this and its run was forgotten.
            worker = app.worker(queues=list(queues) or None, slots=slots, name=name, on_hang=_end_hung)
            await _run_to_the_end(worker)
    except asyncio.CancelledError:
        if worker is not None:
            raise
    finally:
        await app.close()


def settle_memory() -> None:
    """Tell the garbage collector that all objects that exist now stay to the end of the process.

    It need not look at them again. In a drain of 20,000 jobs it did so once, for 39 ms, and
    everything waited.
    """
    gc.collect()
    gc.freeze()
    # Jobs come and go by the thousand: looking among them every 700 objects took about a µs of
    # each.
    gc.set_threshold(10_000, *gc.get_threshold()[1:])


async def _run_to_the_end(worker: Worker) -> None:
    """Run it.

    Where a handler ignores being stopped or memory ran out, only the end of the process helps (the
    jobs are handed back by then).
    """
    import asyncio  # noqa: PLC0415 - heavy

    code, problem = OK, None
    try:
        await worker.run()
    except LivewellError as error:
        code, problem = PROBLEM, error
    except Exception:  # noqa: BLE001 - printed; it may be for want of memory, and an orderly end needs some: a thread to start, tasks to wait for
        with suppress(MemoryError):
            say(traceback.format_exc())
        os._exit(PROBLEM)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)  # it has stopped: another signal must not change the exit code
    if worker.must_exit_hard:
        if problem is not None:
            echo(f"livewell: worker: {problem}", err=True)
        sys.stderr.flush()
        os._exit(code)
    if problem is not None:
        raise problem


def _end_hung() -> None:
    """A handler has blocked the event loop for two leases; its jobs are in other hands.

    Say where it hangs, and make room for a new process.
    """
    faulthandler.dump_traceback(sys.stderr, all_threads=True)
    sys.stderr.write(
        "livewell worker: a handler blocks the event loop (see above); ending so that a new process can start\n"
    )
    sys.stderr.flush()
    os._exit(PROBLEM)


def _give_up() -> None:
    """A worker that cannot end must not stay for ever: its lease runs out, and its jobs are recovered."""
    import structlog  # noqa: PLC0415 - heavy

    structlog.get_logger("livewell.worker").error("did not stop in time; ending on the spot")
    os._exit(PROBLEM)


def stopper(stop: Callable[[], None]) -> Callable[[], None]:
    """What a signal does: ask, ask again, and the third time end this process without another word."""
    import structlog  # noqa: PLC0415 - heavy

    log = structlog.get_logger("livewell.worker")
    asked = 0

    def on_signal() -> None:
        nonlocal asked
        asked += 1
        if asked >= 3:
            os._exit(INTERRUPTED)
        log.info("stopping: running jobs may finish" if asked == 1 else "hurrying: running jobs are handed back")
        stop()

    return on_signal


def hold_leash(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Call stop once standard input ends; nothing is ever written to it."""
    descriptor = sys.stdin.fileno()

    def on_input() -> None:
        if not os.read(descriptor, 1024):
            loop.remove_reader(descriptor)
            stop()

    loop.add_reader(descriptor, on_input)


def run(make: Callable[[], Any]) -> None:
    """Run a coroutine on uvloop, where there is one."""
    import asyncio  # noqa: PLC0415 - heavy

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(make())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop


def _supervise(
    app: Livewell,
    target: str,
    *,
    queues: Sequence[str],
    slots: int | None,
    processes: int,
    name: str | None,
    metrics: str | None,
) -> int:
    """Check here what would make every child fail at once; then let them run."""
    import asyncio  # noqa: PLC0415 - heavy

    from livewell.db.prepare import database_address, prepare_schema  # noqa: PLC0415 - heavy
    from livewell.queue.worker.supervisor import Supervisor  # noqa: PLC0415 - heavy

    settings = app.settings
    prepare_schema(database_address(settings), settings, apply=False)
    options = [*(f"--queue={queue}" for queue in queues), *([f"--slots={slots}"] if slots else [])]

    def arguments(place: int) -> list[str]:
        named = [f"--name={name}-{place}"] if name else []
        counted = [f"--metrics={_next_port(metrics, place - 1)}"] if metrics else []
        command = [sys.executable, "-m", "livewell.cli", "worker", target, *options, *named, *counted]
        return [*command, "--processes=1", "--leash"]

    supervisor = Supervisor(arguments, processes, patience_seconds=settings.grace_seconds + RELEASE_SECONDS + 3)

    async def supervise() -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, supervisor.stop)
        return await supervisor.run()

    return asyncio.run(supervise()) or OK


def _next_port(address: str, place: int) -> str:
    """The address of a process by its place; any free port stays any free port."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + place if int(port) else 0}"
