"""`livewell migrate`: bring the schema to this release, say whether it is, or print the SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo

if TYPE_CHECKING:
    from livewell.db.migrate import MigrationReport, Problem


@command("migrate")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 and list what is not as this release wants it.")
@click.option("--print", "as_sql", is_flag=True, help="Change nothing; print the whole schema as SQL for a DBA.")
@click.option(
    "--roles", type=click.Choice(["create", "none"]), help="none: leave the server's roles alone (LIVEWELL_ROLES)."
)
@AS_JSON
@click.pass_context
def migrate(ctx: click.Context, *, check: bool, as_sql: bool, roles: str | None, as_json: bool) -> None:
    """Install or upgrade the schema.

    Does nothing when it is current, and is safe to run from many places at once.
    """
    from livewell.db import migrate as migrations  # noqa: PLC0415 - heavy
    from livewell.db.prepare import database_address  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    if check and as_sql:
        raise click.UsageError("--check and --print: choose one", ctx)
    settings = Settings.load(roles=roles)
    if as_sql:
        text = migrations.render(settings.roles)
        print_json({"sql": text}) if as_json else echo(text, nl=False)
        return
    address = database_address(settings)
    if not check:
        _say_done(migrations.migrate(address, roles=settings.roles), as_json=as_json)
        return
    problems = migrations.check(address)
    _say_problems(problems, as_json=as_json)
    if problems:
        ctx.exit(PROBLEM)


def _say_done(report: MigrationReport, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "changed": report.changed,
                "version_before": report.version_before,
                "version": report.version,
                "applied": list(report.applied),
                "seconds": round(report.seconds, 3),
            }
        )
    elif not report.changed:
        echo(f"The schema is current (release {report.version}); nothing to do.")
    else:
        was = "installed" if report.version_before is None else "brought up to date"
        files = f"{len(report.applied)} file{'s' * (len(report.applied) != 1)}"
        echo(f"Schema {was}: release {report.version}, {files} in {report.seconds:.1f} s.")


def _say_problems(problems: list[Problem], *, as_json: bool) -> None:
    if as_json:
        found = [{"kind": one.kind, "message": one.message, "command": one.command} for one in problems]
        print_json({"ok": not problems, "problems": found})
    elif not problems:
        echo("The schema is exactly what this release wants.")
    else:
        for one in problems:
            echo(f"{one.kind}: {one.message} {one.command}")
