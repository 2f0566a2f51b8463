"""`livewell doctor`: is anything wrong, what does it mean, and what mends it?"""

from __future__ import annotations

import asyncio
import time

import click

from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo
from livewell.telemetry.redact import redact


@command("doctor")
@AS_JSON
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Look for every known failure, and say what was seen, what it means and what mends it.

    Exits with 1 when there is a finding. Takes less than three seconds; changes nothing.
    """
    from livewell.db.prepare import database_address  # noqa: PLC0415 - heavy
    from livewell.operations.doctor import examine  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    settings = Settings.load()
    logs.configure(level=settings.log_level, form=settings.log_format)
    began = time.monotonic()
    found = asyncio.run(examine(database_address(settings), settings))
    seconds = time.monotonic() - began
    if as_json:
        findings = [finding.document() for finding in found]
        print_json({"ok": not found, "findings": findings, "seconds": round(seconds, 3)})
    elif not found:
        echo(f"All is well: nothing was found in {seconds:.1f} s.")
    for place, finding in enumerate(found if not as_json else (), 1):
        # Each by itself: "upstream_credential: fx" is a finding and its type, not a secret and its
        # name.
        seen, means, mends = (redact(text) for text in (finding.seen, finding.means, finding.command))
        echo(f"{place}. {finding.word}: {redact(finding.subject)}")
        echo(f"   seen   {seen}\n   means  {means}\n   mend   {mends}\n")
    if found:
        if not as_json:
            echo(
                f"{len(found)} finding{'s' * (len(found) != 1)} in {seconds:.1f} s. Each is explained: livewell "
                "docs operations/doctor"
            )
        ctx.exit(PROBLEM)
