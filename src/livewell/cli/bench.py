"""`livewell bench NAME`: compare with peers in one run on this machine. The benchmarks live in the source checkout, not in the package."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import click

from livewell.cli.command import Group
from livewell.errors import LivewellError


@click.group("bench", cls=Group)
def bench() -> None:
    """Measure against peers, in one run (needs the source checkout)."""


@bench.command("queue")
@click.option(
    "--jobs", type=click.IntRange(5000, 1_000_000), default=20_000, show_default=True, help="A multiple of 5,000."
)
@click.option("--pairs", type=click.IntRange(1, 50), default=5, show_default=True, help="Alternating pairs of runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def queue(*, jobs: int, pairs: int, as_json: bool) -> None:
    """Drain no-op jobs with one worker process, beside PgQueuer at its best settings."""
    comparison = _module("bench.queue").run(jobs=jobs, pairs=pairs, say=lambda line: click.echo(line, err=True))
    click.echo(json.dumps(comparison, indent=None if as_json else 2))


def _module(name: str) -> Any:
    """Import a benchmark from the checkout the command is run in."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise LivewellError(
            f"{error}: benchmarks are run in a source checkout with the extras dev and bench installed, as `make bench` does"
        ) from None
