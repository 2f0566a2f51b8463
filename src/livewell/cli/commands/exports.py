"""`livewell exports`: what is being made, and what to do about it. Nothing of a document is printed (E15)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.output import AS_JSON, LIMIT, Column, print_facts, print_json, print_table, say_more
from livewell.cli.terminal import echo
from livewell.words import age, number, size

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.exports.duties import Cleaned

Record = dict[str, Any]
ROWS_MAX = 500  # of one page, whatever is asked for: find_exports
STATES = ("waiting", "running", "finished", "failed", "cancelled", "deleted", "expired")
_FIND = "SELECT * FROM livewell.find_exports(%s, %s, %s, %s, %s)"


@group("exports")
def exports() -> None:
    """List exports, cancel one, remove files that nobody needs, show which characters can be printed."""


@exports.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only these.")
@click.option("--user", metavar="USER", help="Only of this user: key:ID, jwt:ISSUER:SUBJECT, cli:NAME@MACHINE.")
@LIMIT
@click.option("--after", metavar="TIME", help="Go on before this `created_at` of the JSON output: the next page.")
@AS_JSON
def list_exports(*, state: str | None, user: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """List exports, the newest first."""
    before = None if after is None else _instant(after)

    async def fetch(app: Livewell) -> tuple[list[Record], datetime]:
        rows = await app.database.call_dicts(_FIND, (state, user, before, limit, None))
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json({**row, "id": str(row["id"])})
        return
    columns = [
        Column("export"),
        Column("state", elastic=True),
        Column("user", elastic=True),
        Column("kind"),
        Column("size", number=True),
        Column("pages", number=True),
        Column("fetched", number=True),
        Column("asked for"),
    ]
    empty = "There are no exports." if state is user is after is None else "There is no such export."
    print_table(columns, [_cells(row, now) for row in rows], empty=empty)
    say_more(rows, min(limit, ROWS_MAX), lambda row: row["created_at"].isoformat())


@exports.command("show")
@click.argument("export", metavar="ID", type=click.UUID)
@AS_JSON
@click.pass_context
def show(ctx: click.Context, *, export: UUID, as_json: bool) -> None:
    """Show one export: how far it is, and which job makes it."""

    async def fetch(app: Livewell) -> tuple[Record | None, datetime]:
        return await _one(app, export), await database_now(app)

    found, now = with_app(fetch)
    if found is None:
        _say_none(export, as_json=as_json)
        ctx.exit(PROBLEM)
    if as_json:
        print_json({**found, "id": str(found["id"])})
        return
    facts = {name: value for name, value in found.items() if value is not None}
    for name in ("created_at", "started_at", "finished_at", "expires_at", "removed_at"):
        if name in facts:
            facts[name] = f"{facts[name]:%Y-%m-%d %H:%M:%S} UTC ({age(facts[name], now)})"
    print_facts(facts)
    if found["state"] in ("waiting", "running"):
        echo(f"\nWhy does it wait? livewell why job {found['job_id']}")


@exports.command("cancel")
@click.argument("export", metavar="ID", type=click.UUID)
@AS_JSON
@click.pass_context
def cancel(ctx: click.Context, *, export: UUID, as_json: bool) -> None:
    """Cancel an export that has not ended; its user's room is free at once."""

    async def act(app: Livewell) -> str | None:
        from livewell.exports.exports import Exports  # noqa: PLC0415 - heavy

        found = await _one(app, export)
        return None if found is None else await Exports.of(app).cancel(export, user=found["user_id"])

    answer = with_app(act)
    if answer is None:
        _say_none(export, as_json=as_json)
    elif as_json:
        print_json({"id": str(export), "answer": answer})
    else:
        echo("Cancelled." if answer == "cancelled" else "It has ended already; nothing was changed.")
    if answer != "cancelled":
        ctx.exit(PROBLEM)


@exports.command("cleanup")
@click.option("--sweep", is_flag=True, help="Look through the whole store for files that no export knows, too.")
@AS_JSON
@click.pass_context
def cleanup(ctx: click.Context, *, sweep: bool, as_json: bool) -> None:
    """Remove files that have expired or were deleted, now instead of within a minute."""
    from livewell.exports import duties  # noqa: PLC0415 - heavy
    from livewell.exports.exports import Exports  # noqa: PLC0415 - heavy

    async def act(app: Livewell) -> list[Cleaned]:
        made = Exports.of(app)
        try:
            store = made.store
            done = [await duties.clean(app.database, store)]
            return [*done, await duties.sweep(app.database, store)] if sweep else done
        finally:
            await made.close()

    done = with_app(act)
    removed, left = sum(one.removed for one in done), sum(one.left for one in done)
    why = ", ".join(sorted({one.reason for one in done if one.reason}))
    if as_json:
        print_json({"removed": removed, "left": left, "reason": why or None})
    else:
        echo(f"{number(removed)} {'file' if removed == 1 else 'files'} removed.")
        if left:
            echo(f"{number(left)} could not be removed: {why}. They are tried again every minute.", err=True)
    if left:
        ctx.exit(PROBLEM)


@exports.command("fonts")
@click.argument("text", required=False, metavar="[TEXT]")
@AS_JSON
@click.pass_context
def fonts(ctx: click.Context, *, text: str | None, as_json: bool) -> None:
    """Show which scripts can be printed, with which fonts; of a TEXT, which characters cannot."""
    from livewell.apps.resumes.fonts import Characters, character_name, coverage, scripts  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    found = coverage(str(folder) for folder in Settings.load().export_fonts)
    known = Characters(found)
    missing = [character_name(one) for one in dict.fromkeys(text or "") if one not in known]
    names = [(Path(one.file).name, one.characters) for one in found]
    if as_json:
        print_json(
            {
                "fonts": [{"file": file, "characters": n} for file, n in names],
                "scripts": scripts(found),
                "missing": missing,
            }
        )
    elif text is not None:
        echo("\n".join(missing) if missing else "Every character can be printed.")
    else:
        rows = [[file, number(n)] for file, n in names]
        print_table([Column("font", elastic=True), Column("characters", number=True)], rows, empty="There is no font.")
        for script, is_there in scripts(found).items():
            echo(f"{'yes' if is_there else 'no ':<4}{script}")
        echo("\nMore fonts: name their folders in LIVEWELL_EXPORT_FONTS.")
    if missing:
        ctx.exit(PROBLEM)


async def _one(app: Livewell, export: UUID) -> Record | None:
    rows = await app.database.call_dicts(_FIND, (None, None, None, 1, export))
    return rows[0] if rows else None


def _say_none(export: UUID, *, as_json: bool) -> None:
    if as_json:
        print_json({"id": None})
    else:
        echo(f"There is no export {export}; see: livewell exports list")


def _cells(row: Record, now: datetime) -> list[str]:
    state: str = row["state"]
    if state == "running":
        state = f"running, {row['progress']} %"
    elif row["reason"] and state in ("failed", "waiting"):
        state = f"{state}: {row['reason']}"
    return [
        str(row["id"]),
        state,
        row["user_id"],
        row["kind"],
        "" if row["bytes"] is None else size(row["bytes"]),
        "" if row["pages"] is None else number(row["pages"]),
        number(row["downloads"]) if row["downloads"] else "",
        age(row["created_at"], now),
    ]


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise click.BadParameter("an instant with its zone is wanted, as `created_at` of --json", param_hint="--after")
    return found
