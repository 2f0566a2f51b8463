"""`livewell db`: the embedded server of this machine, and psql on whichever database is configured."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import click

from livewell.cli.command import PROBLEM, group, say
from livewell.cli.output import AS_JSON, print_facts, print_json
from livewell.cli.terminal import echo
from livewell.errors import LivewellError

if TYPE_CHECKING:
    from livewell.db.embedded import EmbeddedServer
    from livewell.settings import Settings


@group("db")
def db() -> None:
    """Start, stop and inspect the embedded Postgres; open psql."""


@db.command("start")
@AS_JSON
def start(*, as_json: bool) -> None:
    """Start the embedded server, or find it running."""
    from livewell.db import embedded  # noqa: PLC0415 - heavy

    settings = _settings()
    _say_unused(settings)
    server = embedded.start(_folder(settings))
    if not as_json:
        echo("It was running already." if server.attached else "Started. It runs until: livewell db stop")
    _describe(server, as_json=as_json)


@db.command("stop")
@AS_JSON
def stop(*, as_json: bool) -> None:
    """Stop the embedded server; its data stays."""
    from livewell.db import embedded  # noqa: PLC0415 - heavy

    folder = _folder(_settings())
    stopped = embedded.stop(folder)
    if as_json:
        print_json({"stopped": stopped, "data_dir": str(folder)})
    else:
        echo("Stopped." if stopped else f"It was not running (data folder {folder}).")


@db.command("status")
@AS_JSON
@click.pass_context
def status(ctx: click.Context, *, as_json: bool) -> None:
    """Say whether the embedded server runs, and where; exit 1 when it does not."""
    from livewell.db import embedded  # noqa: PLC0415 - heavy

    settings = _settings()
    _say_unused(settings)
    folder = _folder(settings)
    server = embedded.status(folder)
    if server is not None:
        _describe(server, as_json=as_json)
        return
    if as_json:
        print_json({"running": False, "data_dir": str(folder)})
    else:
        echo(f"Not running (data folder {folder}). Start it with: livewell db start")
    ctx.exit(PROBLEM)


@db.command("psql", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PSQL ARGUMENT]...")
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql on the configured database.

    What follows goes to psql: livewell db psql -c 'SELECT count(*) FROM livewell.job'
    """
    from livewell.db.prepare import database_address  # noqa: PLC0415 - heavy

    settings = _settings()
    program = _find_psql(settings)
    address, password = without_password(database_address(settings))
    environment = dict(os.environ)
    if password is not None:
        environment["PGPASSWORD"] = password  # not as an argument: those can be read by every user of the machine
    sys.stdout.flush()
    os.execve(program, [program, f"--dbname={address}", *arguments], environment)  # noqa: S606 - no shell: psql takes our place


_PART = re.compile(r"(?s)\s*(\w+)\s*=\s*('(?:\\.|[^'\\])*'|(?:\\.|[^\s\\])*)")


def without_password(address: str) -> tuple[str, str | None]:
    """An address without its password, and the password."""
    return _url_without(address) if "://" in address else _conninfo_without(address)


def _url_without(address: str) -> tuple[str, str | None]:
    parts = urlsplit(address)
    credentials, at, hosts = parts.netloc.rpartition("@")
    user, _, given = credentials.partition(":")
    query = parse_qsl(parts.query, keep_blank_values=True)
    asked = [value for name, value in query if name == "password"]
    rest = urlencode([pair for pair in query if pair[0] != "password"], safe="/,")
    password = asked[-1] if asked else unquote(given) or None
    return urlunsplit((parts.scheme, f"{user}{at}{hosts}", parts.path, rest, "")), password


def _conninfo_without(address: str) -> tuple[str, str | None]:
    password: str | None = None
    kept = []
    for part in _PART.finditer(address):
        if part[1] == "password":
            password = re.sub(r"\\(.)", r"\1", part[2].removeprefix("'").removesuffix("'"))
        else:
            kept.append(f"{part[1]}={part[2]}")
    return " ".join(kept), password


def _find_psql(settings: Settings) -> str:
    """Beside the embedded server's programs, else on PATH."""
    from livewell.db.embedded.binaries import find_binaries  # noqa: PLC0415 - heavy
    from livewell.errors import EmbeddedPostgresError  # noqa: PLC0415 - heavy

    places = [] if settings.postgres_bin is None else [settings.postgres_bin]
    with contextlib.suppress(EmbeddedPostgresError):  # without an embedded server there is still PATH
        places.append(find_binaries().bin_dir)
    for place in places:
        if os.access(place / "psql", os.X_OK):
            return str(place / "psql")
    found = shutil.which("psql")
    if found is None:
        looked = ", ".join(map(str, places)) or "no embedded Postgres is installed"
        raise LivewellError(
            f"there is no psql beside the server's programs ({looked}) nor on PATH. Install one: apt install "
            "postgresql-client"
        )
    return found


def _settings() -> Settings:
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    return Settings.load()


def _folder(settings: Settings) -> Path:
    from livewell.db import embedded  # noqa: PLC0415 - heavy

    return settings.data_dir or embedded.default_data_dir()


def _say_unused(settings: Settings) -> None:
    if settings.database_url is not None:
        say("Note: DATABASE_URL is set, so every other command uses that server and not the embedded one.")


def _describe(server: EmbeddedServer, *, as_json: bool) -> None:
    from livewell.telemetry.redact import mask_url  # noqa: PLC0415 - heavy

    facts: dict[str, Any] = {
        "running": True,
        "address": mask_url(server.dsn),
        "port": server.port,
        "pid": server.pid,
        "version": server.version,
        "data_dir": str(server.data_dir),
    }
    if as_json:
        print_json(facts)
        return
    del facts["running"]
    print_facts({**facts, "password": f"in {server.data_dir}/password; or open it with: livewell db psql"})
