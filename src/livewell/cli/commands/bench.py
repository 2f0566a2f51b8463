"""`livewell bench NAME`: compare with peers in one run on this machine.

The benchmarks live in the source checkout, not in the package.
"""

from __future__ import annotations

import importlib
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from livewell.cli.command import Group
from livewell.cli.output import AS_JSON, Column, print_json, print_table
from livewell.cli.terminal import echo
from livewell.errors import ConfigurationError, LivewellError


@click.group("bench", cls=Group)
def bench() -> None:
    """Measure against peers, in one run (needs the source checkout)."""


@bench.command("queue")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--peers", metavar="NAME,…", help="Only these peers.")
@click.option("--jobs", type=click.IntRange(1, 1_000_000), metavar="N", help="Jobs of a drain, instead of 20,000.")
@click.option("--pairs", type=click.IntRange(1, 50), default=5, show_default=True, help="Alternating pairs of runs.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines and the peers, and measure nothing.")
@AS_JSON
def queue(
    *,
    lines: str | None,
    peers: str | None,
    jobs: int | None,
    pairs: int,
    scale: float,
    listing: bool,
    as_json: bool,
) -> None:
    """The queue beside its peers: drains, latency, enqueueing, crowds, an old snapshot, WAL.

    All of it takes about 20 minutes. Progress goes to standard error.
    """
    module = _module("bench.queue")
    if listing:
        print_json({"lines": module.LINE_NAMES, "peers": module.PEER_NAMES})
        return
    _end_as_by_ctrl_c()
    sizes = _module("bench.sizes").Sizes().scaled(scale)
    document = module.run(
        pairs=pairs,
        say=lambda line: echo(line, err=True),
        lines=_chosen("line", lines, module.LINE_NAMES),
        peers=_chosen("peer", peers, module.PEER_NAMES),
        sizes=replace(sizes, jobs=jobs) if jobs else sizes,
    )
    if as_json:
        print_json(document)
        return
    _print(document, module.table(document))


@bench.command("refresh")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=5, show_default=True, help="Alternating pairs of runs.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def refresh(*, lines: str | None, pairs: int, scale: float, listing: bool, as_json: bool) -> None:
    """The refresh engine: latency, the due check, use of a limit, pace, a key with a crowd.

    All of it takes about 20 minutes. Progress goes to standard error.
    """
    _measure("bench.refresh", lines, pairs, scale, listing=listing, as_json=as_json)


@bench.command("push")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=1, show_default=True, help="Runs of each line.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--seconds", type=click.IntRange(1, 3600), metavar="N", help="Of the fan-out, instead of 300.")
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def push(*, lines: str | None, pairs: int, scale: float, seconds: int | None, listing: bool, as_json: bool) -> None:
    """Streams: latency, fan-out to 2,000 of them, clients that never read, a reconnect storm.

    All of it takes about 8 minutes. Progress goes to standard error.
    """
    changes = {"fan_out_seconds": seconds} if seconds else {}
    _measure("bench.push", lines, pairs, scale, listing=listing, as_json=as_json, **changes)


@bench.command("operations")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=1, show_default=True, help="Runs of each line.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def operations(*, lines: str | None, pairs: int, scale: float, listing: bool, as_json: bool) -> None:
    """The scheduler: how late a slot begins, and what a frozen scheduler costs.

    Progress goes to standard error.
    """
    _measure("bench.operations", lines, pairs, scale, listing=listing, as_json=as_json)


@bench.command("outbox")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=3, show_default=True, help="Alternating pairs of runs.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def outbox(*, lines: str | None, pairs: int, scale: float, listing: bool, as_json: bool) -> None:
    """The outbox beside a peer: drains, emitting, latency, fairness, failing keys, an old snapshot, WAL.

    Progress goes to standard error.
    """
    _measure("bench.outbox", lines, pairs, scale, listing=listing, as_json=as_json)


@bench.command("contacts")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=1, show_default=True, help="Runs of each line.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def contacts(*, lines: str | None, pairs: int, scale: float, listing: bool, as_json: bool) -> None:
    """Contacts: who is this, with a million of them, and a crowd about one.

    Progress goes to standard error.
    """
    _measure("bench.contacts", lines, pairs, scale, listing=listing, as_json=as_json)


@bench.command("exports")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=1, show_default=True, help="Runs of each line.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def exports(*, lines: str | None, pairs: int, scale: float, listing: bool, as_json: bool) -> None:
    """Exports: accepted, one page, two, five documents, a ZIP of ten, the pace of many, and memory.

    Through a real server and a real worker. Progress goes to standard error.
    """
    _measure("bench.exports", lines, pairs, scale, listing=listing, as_json=as_json)


@bench.command("dashboard")
@click.option("--lines", metavar="NAME,…", help="Only these lines; --list shows which there are.")
@click.option("--pairs", type=click.IntRange(1, 50), default=3, show_default=True, help="Alternating pairs of runs.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    help="All sizes × this, to try it out; the bounds hold for 1.",
)
@click.option("--list", "listing", is_flag=True, help="Name the lines, and measure nothing.")
@AS_JSON
def dashboard(*, lines: str | None, pairs: int, scale: float, listing: bool, as_json: bool) -> None:
    """The dashboard: every page on a large system, ten live tabs beside a worker, the first page in a browser.

    Progress goes to standard error.
    """
    _measure("bench.dashboard", lines, pairs, scale, listing=listing, as_json=as_json)


def _measure(
    name: str, lines: str | None, pairs: int, scale: float, *, listing: bool, as_json: bool, **changes: int
) -> None:
    module = _module(name)
    if listing:
        print_json({"lines": module.LINE_NAMES})
        return
    _end_as_by_ctrl_c()
    document = module.run(
        pairs=pairs,
        say=lambda line: echo(line, err=True),
        lines=_chosen("line", lines, module.LINE_NAMES),
        sizes=replace(module.Sizes().scaled(scale), **changes),
    )
    if as_json:
        print_json(document)
        return
    _print_table(module.table(document))
    for told in module.stages(document):
        echo(told)


def _end_as_by_ctrl_c() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # without a server left behind
        signal.signal(number, signal.default_int_handler)


def _print_table(rows: list[list[str]]) -> None:
    headings = [Column("line"), Column("ours", number=True), Column("peer", number=True)]
    headings += [Column("ratio (quartile)", number=True), Column("bound"), Column("met")]
    print_table(headings, rows, empty="Nothing was measured.")


def _print(document: dict[str, Any], rows: list[list[str]]) -> None:
    _print_table(rows)
    drained = document["results"].get("drain") or document["results"].get("wal") or {}
    for name, words in (
        ("wal_bytes_per_job", "WAL bytes per job, claim and finish"),
        ("calls_per_job", "SQL calls per job"),
    ):
        if name in drained:
            echo(f"{words}: {drained[name]:,.4g}")
    echo(f"The worker's SQL alone, in a bare loop: {document['limit']['jobs_per_second']:,.0f} jobs/s")
    for peer, reason in document["peers_skipped"].items():
        echo(f"Skipped: {peer}: {reason}")


def _chosen(what: str, given: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return known
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise ConfigurationError(f"there is no {what} {name!r}; there are: {', '.join(known)}")
    return names


def _module(name: str) -> Any:
    """Import a benchmark from the checkout the command is run in."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LivewellError(
            f"{error}: benchmarks are run in a source checkout with the extras dev and bench installed, as "
            "`make bench` does"
        ) from None
