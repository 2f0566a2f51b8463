"""`livewell demo`: the market, kept fresh; the tour of the queue; contacts that race; or résumés exported."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from livewell.cli.administration import person_here
from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import console, has_reader

if TYPE_CHECKING:
    from livewell.apps.market.demo.site import Door
    from livewell.apps.market.demo.totals import Totals
    from livewell.db import Database
    from livewell.settings import Settings

T = TypeVar("T")


@command("demo")
@click.argument(
    "which",
    metavar="[market|contacts|resumes|tour]",
    type=click.Choice(["market", "contacts", "resumes", "tour"]),
    default="market",
)
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(min=1, max=86_400),
    metavar="SECONDS",
    help="Market, contacts and resumes: end after so long, and count. The tour ends by itself.",
)
@click.option("--faults", is_flag=True, help="Market: a hostile upstream, twenty families of faults.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Market: where its page is; 8484, if not given, or any if that is taken.",
)
@click.option("--seed", type=click.IntRange(0), default=7, show_default=True, metavar="N", help="Market: another day.")
@click.option(
    "--print-link",
    is_flag=True,
    help="Market: print the login link also into a pipe, a file or a log; a terminal always gets it.",
)
@click.option("--jobs", type=click.IntRange(10, 1_000_000), metavar="N", help="Tour: how many; 5000, if not given.")
@AS_JSON
@click.pass_context
def demo(
    ctx: click.Context,
    *,
    which: str,
    seconds: float | None,
    faults: bool,
    port: int | None,
    seed: int,
    print_link: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """See it work: a market kept fresh, contacts that race, résumés exported, or a tour of the queue.

    market: hundreds of simulated viewers look at simulated prices; a worker keeps what they look at
    fresh within the limits of the upstream, and a server pushes it to whoever watches. Open the
    link it prints in a browser. Kill what you like: it comes back. It has a database of its own
    (.livewell-demo, or one on the server of DATABASE_URL), and leaves nothing running. With --for
    it ends by comparing everything that was ever stored with the upstream's own log; exit 1 if
    anything was wrong.

    contacts: three worker processes resolve sign-ups, log-ins and imports of the same people, and
    relay what is told of them; one is killed now and then. It ends (after 20 s, if not told
    otherwise) with the verdicts of union-find and of the receiver's log; exit 1 if anything was
    wrong.

    resumes: twenty users export, batch, cancel, delete and download their résumés through a real
    server; a rendering child or a worker is killed every second and a half. It ends (60 s, if not
    told otherwise, and what the last exports need) with the verdict of the users' own logs beside
    the rows, the files, and a second rendering of everything; exit 1 if anything was wrong.

    tour: works thousands of jobs with two worker processes, kills one of them half-way, and counts.
    Exit 1 if a job was lost or an effect doubled.
    """
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    if jobs is not None and which != "tour":
        raise click.UsageError("--jobs is for the tour: livewell demo tour --jobs N", ctx)
    if faults and which != "market":
        raise click.UsageError("--faults is for the market: livewell demo market --faults", ctx)
    settings = Settings.load()
    logs.configure(level=settings.log_level, form=settings.log_format)
    if which == "tour":
        good = _tour(settings, jobs or 5000, as_json=as_json)
    elif which == "contacts":
        good = _contacts(settings, seconds or 20.0, seed=seed, as_json=as_json)
    elif which == "resumes":
        good = _resumes(settings, seconds or 60.0, seed=seed, as_json=as_json)
    else:
        door = _door(print_link=print_link or has_reader(err=as_json))
        good = _market(settings, door, seconds=seconds, faults=faults, seed=seed, port=port, as_json=as_json)
    if not good:
        ctx.exit(PROBLEM)


def _tour(settings: Settings, jobs: int, *, as_json: bool) -> bool:
    from dataclasses import asdict  # noqa: PLC0415 - here only

    from livewell.apps.tour.narration import Narrator  # noqa: PLC0415 - heavy
    from livewell.apps.tour.tour import tour  # noqa: PLC0415 - heavy

    tally = asyncio.run(_interruptible(tour(settings, jobs, Narrator(console(err=as_json)))))
    if as_json:
        print_json(asdict(tally))
    return tally.good


def _contacts(settings: Settings, seconds: float, *, seed: int, as_json: bool) -> bool:
    from livewell.apps.contacts.demo.race import race  # noqa: PLC0415 - heavy

    out = console(err=as_json)
    verdict = asyncio.run(_interruptible(race(settings, out.print, seconds=seconds, seed=seed)))
    out.print(
        f"{verdict.calls:,} calls, {verdict.people:,} people, {verdict.contacts:,} contacts, {verdict.merges:,} merges; "
        f"{verdict.events:,} events, {verdict.received:,} received, {verdict.duplicates:,} of them twice; "
        f"{verdict.kills:,} kills: {len(verdict.lies):,} violations"
    )
    for lie in verdict.lies[:20]:
        out.print(lie)
    if as_json:
        print_json(verdict.as_json())
    return verdict.good


def _resumes(settings: Settings, seconds: float, *, seed: int, as_json: bool) -> bool:
    from livewell.apps.resumes.demo.race import race  # noqa: PLC0415 - heavy
    from livewell.server.auth.key_admin import KeyAdmin  # noqa: PLC0415 - heavy

    async def key(database: Database, name: str) -> str:
        return (await KeyAdmin(database).create(name, scopes=["export"])).text

    out = console(err=as_json)
    verdict = asyncio.run(_interruptible(race(settings, out.print, key, seconds=seconds, seed=seed)))
    out.print(
        f"{verdict.accepted:,} exports of {verdict.users} users: {verdict.finished:,} finished, {verdict.deleted:,} "
        f"deleted, {verdict.cancelled:,} cancelled, {verdict.failed:,} failed; {verdict.downloads:,} downloads and "
        f"{verdict.zips:,} ZIPs, {verdict.rendered_again:,} rendered again; {verdict.children_killed} children and "
        f"{verdict.workers_killed} workers killed: {verdict.wrong} wrong, {verdict.lost} lost, "
        f"{len(verdict.lies):,} violations"
    )
    for lie in verdict.lies[:20]:
        out.print(lie)
    if as_json:
        print_json(verdict.as_json())
    return verdict.good


def _market(
    settings: Settings,
    door: Door,
    *,
    seconds: float | None,
    faults: bool,
    seed: int,
    port: int | None,
    as_json: bool,
) -> bool:
    import logging  # noqa: PLC0415 - here only

    from livewell.apps.market.demo.run import run  # noqa: PLC0415 - heavy
    from livewell.apps.market.demo.screen import Screen  # noqa: PLC0415 - heavy

    if settings.log_level == "info":
        for handler in logging.getLogger().handlers:
            handler.setLevel(logging.CRITICAL)  # what dies and comes back is told by the demo itself
    screen = Screen(console(err=as_json))
    playing = run(settings, screen, door, seconds=seconds, faults=faults, seed=seed, port=port)
    totals = asyncio.run(_interruptible(playing))
    if totals is None:
        return True
    screen.end(_last_words(totals))
    if as_json:
        print_json(totals.as_json())
    return totals.good


def _door(*, print_link: bool) -> Door:
    """Keys and links are the server's business, which stands above the apps.

    Where nobody reads the link there is only the address.
    """
    from livewell.apps.market.demo.site import Door  # noqa: PLC0415 - heavy
    from livewell.server.auth.key_admin import KeyAdmin  # noqa: PLC0415 - heavy
    from livewell.server.auth.login_links import link_address, make_link  # noqa: PLC0415 - heavy

    async def link(database: Database, settings: Settings, base: str) -> str:
        return link_address(base, await make_link(database, settings, person=person_here())) if print_link else base

    async def key(database: Database) -> str:
        return (await KeyAdmin(database).create("demo", scopes=["view", "subscribe"], public=True)).text

    return Door(link, key)


def _last_words(totals: Totals) -> list[tuple[str, str]]:
    style = "bold green" if totals.good else "bold red"
    lines = [
        (
            (
                f"{totals.wrong_values_stored} wrong values stored, {totals.calls_above_limit} calls above the "
                f"limit, {totals.false_verdicts} false verdicts"
            ),
            style,
        ),
        (
            (
                f"{totals.values_compared:,} stored values and {totals.verdicts_compared:,} verdicts compared with "
                f"the simulator's own log, {totals.seconds:.0f} s"
            ),
            "dim",
        ),
    ]
    if totals.faults_fired:
        fired = ", ".join(f"{family} {n}" for family, n in totals.faults_fired.items())
        lines.append((f"faults fired: {fired}", "dim"))
    return [*lines, *((lie, "red") for lie in totals.lies), ("", "")]


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    """SIGTERM ends it as Ctrl-C does: with everything cleaned up."""
    running = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        return await running
    except asyncio.CancelledError:
        raise click.Abort from None
