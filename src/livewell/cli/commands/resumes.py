"""`livewell resumes`: documents of a person, as files."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from livewell.cli.administration import database_now, person_here, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, LIMIT, Column, print_json, print_table, say_more
from livewell.cli.terminal import echo
from livewell.errors import InvalidOption
from livewell.telemetry.control_characters import escaped
from livewell.words import age, size

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.apps.resumes.resumes import Record, Resumes, Written

USER = click.option(
    "--user",
    metavar="USER",
    help="Whose documents: key:ID, jwt:ISSUER:SUBJECT. Not given: yours, as in a browser that has followed a login "
    "link of this terminal.",
)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@group("resumes")
def resumes() -> None:
    """Bring résumés in from files of JSON Resume, list them, and write them to files."""


@resumes.command("import")
@click.argument("file", type=FILE, metavar="FILE")
@click.option("--name", metavar="NAME", help="What it is called; not given: the name of its person.")
@USER
@AS_JSON
def import_resume(*, file: Path, name: str | None, user: str | None, as_json: bool) -> None:
    """Keep a resume.json as a new document."""
    content = file.read_bytes()

    async def act(app: Livewell) -> Written:
        return await _api(app).create(content, user=user or person_here(), name=name)

    made = with_app(act)
    if as_json:
        print_json({"id": str(made.id), "version": made.version})
    else:
        echo(str(made.id))


@resumes.command("list")
@USER
@LIMIT
@click.option("--after", metavar="CURSOR", help="Go on after this `cursor` of the JSON output: the next page.")
@AS_JSON
def list_resumes(*, user: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """List documents, the one that changed last first."""
    place = _place(after)

    async def fetch(app: Livewell) -> tuple[list[Record], datetime]:
        return await _api(app).page(user=user or person_here(), after=place, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json({**row, "id": str(row["id"]), "cursor": _cursor(row)})
        return
    columns = [
        Column("document"),
        Column("name", elastic=True),
        Column("version", number=True),
        Column("size"),
        Column("changed"),
    ]
    cells = (
        [str(row["id"]), row["name"], str(row["version"]), size(row["bytes"]), age(row["changed_at"], now)]
        for row in rows
    )
    print_table(columns, cells, empty="There are no documents: livewell resumes import FILE")
    say_more(rows, limit, _cursor)


@resumes.command("export")
@click.argument("document", metavar="ID", type=click.UUID)
@click.option("--version", type=click.IntRange(1, 2**31 - 1), metavar="N", help="One of its versions; else the latest.")
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it there.")
@USER
@AS_JSON
def export_resume(*, document: UUID, version: int | None, to: Path | None, user: str | None, as_json: bool) -> None:
    """Write a document as the resume.json that it is. PDFs are made with: POST /v1/exports."""

    async def fetch(app: Livewell) -> Record:
        return await _api(app).show(document, user=user or person_here(), version=version)

    found = with_app(fetch)
    content = json.loads(found["content"])
    if to is not None:
        try:
            to.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidOption(f"--to {to}: {error.strerror}; name a file in a folder that is there") from None
    if as_json:
        print_json({"id": found["id"], "version": found["version"]}, as_is={} if to else {"document": content})
    elif to is not None:
        echo(f"Version {found['version']} is in {to}.")
    else:
        echo(escaped(json.dumps(content, indent=2, ensure_ascii=False)))


def _api(app: Livewell) -> Resumes:
    from livewell.apps.resumes.resumes import Resumes  # noqa: PLC0415 - heavy

    return Resumes.of(app)


def _cursor(row: Any) -> str:
    return f"{row['changed_at'].isoformat()}/{row['id']}"


def _place(after: str | None) -> tuple[datetime, UUID] | None:
    if after is None:
        return None
    at, _, key = after.partition("/")
    try:
        instant, document = datetime.fromisoformat(at), UUID(key)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise InvalidOption(f"--after {after!r}: give the `cursor` of a line of: livewell resumes list --json")
    return instant, document
