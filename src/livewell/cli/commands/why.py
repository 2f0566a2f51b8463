"""`livewell why`: why a key is as fresh, or as stale, as it is."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from livewell.cli.administration import with_app
from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.refresh.why import WhyKey


@command("why")
@click.argument("name", metavar="TYPE")
@click.argument("key", metavar="KEY")
@AS_JSON
@click.pass_context
def why(ctx: click.Context, *, name: str, key: str, as_json: bool) -> None:
    """Say why a key is fresh, or what stands in the way of its refresh.

    Nothing is asked for by asking. Exits with 1 when there is no such type, or it can have no such
    key. Of a job: livewell jobs why ID.
    """
    from livewell.refresh.why import NOTHING, why_key  # noqa: PLC0415 - heavy

    if "\x00" in key or "\x00" in name:
        raise click.UsageError("names and keys have no NUL", ctx)

    async def ask(app: Livewell) -> WhyKey:
        return await why_key(app.database, name, key)

    answer = with_app(ask)
    if as_json:
        print_json({**asdict(answer), "words": answer.operator_words})
    else:
        echo(f"{name} {key}: {answer.operator_words}.")
    if answer.reason in NOTHING:
        ctx.exit(PROBLEM)
