"""`livewell up`: everything in one process. A database, the schema, a worker, the HTTP server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from livewell.cli.command import command, say
from livewell.cli.commands.serve import HOST, PORT, PRINT_LINK, Serving, login_link, other_link, serving
from livewell.cli.commands.worker import APP, QUEUES, SLOTS, check_queues, run, work
from livewell.cli.output import AS_JSON, print_facts, print_json
from livewell.cli.terminal import echo
from livewell.errors import ConfigurationError

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.db.migrate import MigrationReport
    from livewell.settings import Settings


@command("up")
@APP
@QUEUES
@SLOTS
@HOST
@PORT
@PRINT_LINK
@AS_JSON
def up(
    *,
    target: str | None,
    queues: tuple[str, ...],
    slots: int | None,
    http_host: str | None,
    http_port: int | None,
    print_link: bool,
    as_json: bool,
) -> None:
    """Run everything in one process: database, schema, worker, HTTP server.

    APP is module:attribute, for example shop.jobs:app (or LIVEWELL_APP, or app in livewell.toml);
    without one only refreshes are done.
    """
    from livewell.cli.target import chosen_target, load_app  # noqa: PLC0415 - heavy
    from livewell.db import migrate  # noqa: PLC0415 - heavy
    from livewell.db.prepare import database_address  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    settings = Settings.load(http_host=http_host, http_port=http_port)
    logs.configure(level=settings.log_level, form=settings.log_format)
    target = chosen_target(target, settings)
    app = load_app(target)
    check_queues(app, target, queues)
    if app.settings.database_url is None and not as_json:
        echo("Starting the embedded Postgres (or finding it running) …")
    address = database_address(app.settings)
    report = migrate.migrate(address, roles=app.settings.roles)
    ready = _server(settings, as_json=as_json)

    async def everything() -> None:
        if ready is None:
            _say(app, target, queues, address, report, served=None, as_json=as_json)
            await work(app, queues=queues, slots=slots)
            return
        async with serving(ready) as stop:
            link = await login_link(settings, ready.base, print_link=print_link)
            _say(app, target, queues, address, report, served=(ready.base, link), as_json=as_json)
            await work(app, queues=queues, slots=slots, beside=stop)

    run(everything)


def _server(settings: Settings, *, as_json: bool) -> Serving | None:
    """Bound and ready to serve; None where the database has no logins for it, which is said."""
    from livewell.server.pools import addresses  # noqa: PLC0415 - heavy
    from livewell.server.serve import bind  # noqa: PLC0415 - heavy

    try:
        where = addresses(settings)
    except ConfigurationError as error:
        if not as_json:
            say(f"The HTTP server is not started: {error}")
        return None
    return Serving(settings, where, bind(settings.http_host, settings.http_port))


def _say(
    app: Livewell,
    target: str,
    queues: tuple[str, ...],
    address: str,
    report: MigrationReport,
    *,
    served: tuple[str, str | None] | None,
    as_json: bool,
) -> None:
    from livewell.schedule.work import default_queues  # noqa: PLC0415 - heavy
    from livewell.telemetry.redact import mask_url  # noqa: PLC0415 - heavy

    worked = list(queues) or default_queues(app.tasks)
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
                "address": served[0] if served else None,
            },
            as_is={"login": served[1] if served else None},
        )
    else:
        facts = {
            "database": f"{mask_url(address)} ({'embedded; look inside with: livewell db psql' if embedded else 'DATABASE_URL'})",
            "schema": f"release {report.version}"
            + (f", {len(report.applied)} files applied" if report.applied else ", current"),
            "app": f"{target}: {', '.join(sorted(app.tasks)) or 'no tasks, refreshes only'}",
            "queues": ", ".join(worked),
            "address": served[0] if served else "the HTTP server is not started",
            "stop": "Ctrl-C" + ("; the database goes on, until: livewell db stop" if embedded else ""),
        }
        print_facts(facts)
        if served:
            echo(f"log in    {served[1] or other_link(served[0])}")  # as it is: it is for the reader
    sys.stdout.flush()
