"""`livewell up`: everything in one process. A database, the schema, a worker."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from livewell.cli.command import command
from livewell.cli.output import AS_JSON, print_facts, print_json
from livewell.cli.worker import APP, QUEUES, SLOTS, check_queues, run, work

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.db.migrate import MigrationReport


@command("up")
@APP
@QUEUES
@SLOTS
@AS_JSON
def up(*, target: str | None, queues: tuple[str, ...], slots: int | None, as_json: bool) -> None:
    """Run everything in one process: database, schema, worker.

    APP is module:attribute, for example shop.jobs:app (or LIVEWELL_APP, or app in livewell.toml); without one only refreshes are done.
    """
    from livewell import logs  # noqa: PLC0415 - heavy
    from livewell.app import database_address  # noqa: PLC0415 - heavy
    from livewell.cli.target import chosen_target, load_app  # noqa: PLC0415 - heavy
    from livewell.db import migrate  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    settings = Settings.load()
    logs.configure(settings)
    target = chosen_target(target, settings)
    app = load_app(target)
    check_queues(app, target, queues)
    if app.settings.database_url is None and not as_json:
        click.echo("Starting the embedded Postgres (or finding it running) …")
    address = database_address(app.settings)
    report = migrate.migrate(address, roles=app.settings.roles)
    _say(app, target, queues, address, report, as_json=as_json)
    run(lambda: work(app, queues=queues, slots=slots))


def _say(
    app: Livewell, target: str, queues: tuple[str, ...], address: str, report: MigrationReport, *, as_json: bool
) -> None:
    from livewell.redact import mask_url  # noqa: PLC0415 - heavy

    worked = list(queues) or [*sorted({definition.policy.queue for definition in app.tasks.values()}), "refresh.*"]
    embedded = app.settings.database_url is None
    if as_json:
        print_json(
            {
                "app": target,
                "database": mask_url(address),
                "embedded": embedded,
                "schema": report.version,
                "migrated": report.changed,
                "tasks": sorted(app.tasks),
                "queues": worked,
            }
        )
    else:
        facts = {
            "database": f"{mask_url(address)} ({'embedded; look inside with: livewell db psql' if embedded else 'DATABASE_URL'})",
            "schema": f"release {report.version}"
            + (f", {len(report.applied)} files applied" if report.applied else ", current"),
            "app": f"{target}: {', '.join(sorted(app.tasks)) or 'no tasks, refreshes only'}",
            "queues": ", ".join(worked),
            "stop": "Ctrl-C" + ("; the database goes on, until: livewell db stop" if embedded else ""),
        }
        print_facts(facts)
    sys.stdout.flush()
