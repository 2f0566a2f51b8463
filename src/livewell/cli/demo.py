"""`livewell demo`: the tour."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, console, print_json

if TYPE_CHECKING:
    from livewell.apps.tour.narration import Narrator
    from livewell.apps.tour.tour import Tally
    from livewell.settings import Settings


@command("demo")
@click.option(
    "--jobs", type=click.IntRange(10, 1_000_000), default=5000, show_default=True, metavar="N", help="How many jobs."
)
@click.option(
    "--for",
    "_seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Accepted for later demos; the tour ends by itself.",
)
@AS_JSON
@click.pass_context
def demo(ctx: click.Context, *, jobs: int, _seconds: float | None, as_json: bool) -> None:
    """See it survive kill -9: a tour of half a minute.

    Works thousands of jobs with two worker processes, kills one of them half-way, and counts. Uses the embedded Postgres, or DATABASE_URL if set, and cleans up
    after itself. Exit 1 if a job was lost or an effect doubled.
    """
    from livewell import logs  # noqa: PLC0415 - heavy
    from livewell.apps.tour.narration import Narrator  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    settings = Settings.load()
    logs.configure(settings)
    tally = asyncio.run(_take(settings, jobs, Narrator(console(err=as_json))))
    if as_json:
        from dataclasses import asdict  # noqa: PLC0415 - here only

        print_json(asdict(tally))
    if not tally.good:
        ctx.exit(PROBLEM)


async def _take(settings: Settings, jobs: int, narrator: Narrator) -> Tally:
    """SIGTERM ends the tour as Ctrl-C does: with everything cleaned up."""
    from livewell.apps.tour.tour import tour  # noqa: PLC0415 - heavy

    taking = asyncio.ensure_future(tour(settings, jobs, narrator))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, taking.cancel)
    try:
        return await taking
    except asyncio.CancelledError:
        raise click.Abort from None
