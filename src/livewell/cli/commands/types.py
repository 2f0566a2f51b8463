"""`livewell types`: what is fetched, how, and how long it stays fresh."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, Group, group
from livewell.cli.output import AS_JSON, LIMIT, Column, print_facts, print_json, print_table, say_more
from livewell.cli.terminal import echo
from livewell.words import age, span

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.refresh.registry.admin import TypeAdmin

NAME = click.argument("name", metavar="TYPE")
KEY = click.argument("key", metavar="KEY")
KEYS = click.argument("keys", metavar="KEY...", nargs=-1, required=True)
AFTER = click.option("--after", default="", metavar="KEY", help="Go on after this key: the next page.")

_FILES_MAX = 200


@group("types")
def types() -> None:
    """List types, apply and check their files, set times to live and the universe."""


@types.command("list")
@AS_JSON
def list_types(*, as_json: bool) -> None:
    """List every type: where it comes from and how long it stays fresh."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], Any]:
        return await admin(app).types(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("type"), Column("upstream"), Column("ttl", number=True), Column("rule"), Column("rows")]
    columns += [Column("strategy", elastic=True), Column("state", elastic=True), Column("version", number=True)]
    columns += [Column("applied")]
    print_table(
        columns,
        (_cells(row, now) for row in rows),
        empty="There are no types yet. Apply the shipped ones with: livewell types apply --app market",
    )


@types.command("show")
@NAME
@AS_JSON
def show(*, name: str, as_json: bool) -> None:
    """Show one type with its columns."""

    row = with_app(lambda app: admin(app).type(name))
    if as_json:
        print_json(row)
        return
    facts = {key: value for key, value in row.items() if key != "columns" and value not in (None, False)}
    for key in [key for key in facts if key.endswith("_seconds")]:
        facts[key.removesuffix("_seconds")] = span(facts.pop(key))
    print_facts(facts)
    echo("")
    print_table(
        [Column("column"), Column("type"), Column("null"), Column("bounds")], map(_column, row["columns"]), empty=""
    )


@types.command("apply")
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path(exists=True, dir_okay=True, path_type=Path))
@click.option("--app", "shipped", type=click.Choice(["market"]), help="The files that come with Livewell.")
@AS_JSON
@click.pass_context
def apply(ctx: click.Context, *, files: tuple[Path, ...], shipped: str | None, as_json: bool) -> None:
    """Put files into the registry, as the owner: upstreams first, then types.

    A folder means the .toml files in it. All are read before the first is applied. A table is only
    ever added to; for anything else the SQL is printed, and nothing is done.
    """
    from livewell.refresh.definition.credentials import own_variables  # noqa: PLC0415 - heavy
    from livewell.refresh.definition.document import read_file  # noqa: PLC0415 - heavy
    from livewell.refresh.definition.model import UpstreamDefinition  # noqa: PLC0415 - heavy
    from livewell.refresh.registry.apply import apply as apply_one  # noqa: PLC0415 - heavy
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    paths = _paths(files, shipped)
    if not paths:
        raise click.UsageError("say which: FILE..., a folder, or --app market", ctx)
    settings = Settings.load()
    hosts, own = settings.outbound_private_hosts or (), own_variables(settings)
    read = [(path.name, read_file(_content(path), path.name, private_hosts=hosts, own_variables=own)) for path in paths]
    read.sort(key=lambda one: not isinstance(one[1], UpstreamDefinition))

    async def act(app: Livewell) -> None:
        for name, definition in read:
            done = await apply_one(app.database, definition, name)
            if as_json:
                print_json(
                    {
                        "file": name,
                        "name": done.name,
                        "outcome": done.outcome,
                        "version": done.version,
                        "statements": list(done.statements),
                    }
                )
            else:
                echo(f"{name}: {done.name} {done.outcome}, version {done.version}.")

    with_app(act)


@types.command("check")
@AS_JSON
@click.pass_context
def check(ctx: click.Context, *, as_json: bool) -> None:
    """Compare every table with the definition it was made from. Exit 1 when one differs."""
    found = with_app(lambda app: admin(app).drift())
    for one in found:
        if as_json:
            print_json({"type": one.type, "what": one.what, "statement": one.statement})
        else:
            echo(f"{one.type}: {one.what}" + (f"\n    {one.statement}" if one.statement else ""))
    if found:
        ctx.exit(PROBLEM)
    if not as_json:
        echo("Every table is as its definition says.")


@types.command("sample")
@NAME
@KEY
@AS_JSON
@click.pass_context
def sample(ctx: click.Context, *, name: str, key: str, as_json: bool) -> None:
    """Fetch one real answer and print it as the [sample] table of the file.

    Exit 1 when the answer does not fit the type; it is printed all the same.
    """
    from livewell.refresh.registry.registry import Registry  # noqa: PLC0415 - heavy
    from livewell.refresh.registry.sample_call import fetch_sample  # noqa: PLC0415 - heavy
    from livewell.refresh.registry.sample_record import Recorded, record  # noqa: PLC0415 - heavy
    from livewell.refresh.result import Value  # noqa: PLC0415 - heavy

    async def act(app: Livewell) -> Recorded:
        registry = Registry(app.database.call)
        definition = (await registry.type(name)).definition
        upstream = (await registry.upstream(definition.upstream)).definition
        fetch = partial(fetch_sample, app.database)
        return await record(definition, upstream, key, fetch=fetch, now=await database_now(app))

    recorded = with_app(act)
    fits = isinstance(recorded.result, Value)
    told = "" if fits else getattr(recorded.result, "detail", "the upstream says that there is no such key")
    if as_json:
        print_json({"type": name, "key": key, "valid": fits, "problem": told or None, "sample": recorded.table})
    else:
        echo(recorded.table, nl=False)
    if not fits:
        echo(f"livewell: types sample: {name} {key}: it does not fit the type: {told}", err=True)
        ctx.exit(PROBLEM)


# ── pausing ──

UPSTREAM = click.option("--upstream", is_flag=True, help="NAME is an upstream: everything that comes from it.")


@types.command("pause")
@click.argument("name", metavar="NAME")
@UPSTREAM
@AS_JSON
def pause(*, name: str, upstream: bool, as_json: bool) -> None:
    """Stop refreshing a type. What is stored is still read, with its true verdict."""
    _pause(name, paused=True, upstream=upstream, as_json=as_json)


@types.command("resume")
@click.argument("name", metavar="NAME")
@UPSTREAM
@AS_JSON
def resume(*, name: str, upstream: bool, as_json: bool) -> None:
    """Refresh a type again, also one that was parked because the plan did not include it."""
    _pause(name, paused=False, upstream=upstream, as_json=as_json)


def _pause(name: str, *, paused: bool, upstream: bool, as_json: bool) -> None:
    from livewell.refresh.nudges import DUE  # noqa: PLC0415 - heavy

    async def act(app: Livewell) -> None:
        await admin(app).pause(name, paused=paused, upstream=upstream)
        app.nudger.nudge(DUE)

    with_app(act)
    if as_json:
        print_json({"upstream" if upstream else "type": name, "paused": paused})
    else:
        what = f"Everything from {name}" if upstream else name
        echo(f"{what} is {'not refreshed any more' if paused else 'refreshed again'}.")


# ── times to live ──


@types.group("ttl", cls=Group)
def ttl() -> None:
    """Give keys a time to live of their own, list and clear them."""


@ttl.command("set")
@NAME
@KEY
@click.argument("ttl", metavar="TIME")
@AS_JSON
def set_ttl(*, name: str, key: str, ttl: str, as_json: bool) -> None:
    """Let one key stay fresh for TIME ("30s", "5m", "2h", "1d"); it holds at once."""
    span_seconds = with_app(lambda app: admin(app).set_ttl(name, key, ttl))
    if as_json:
        print_json({"type": name, "key": key, "ttl_seconds": span_seconds})
    else:
        echo(f"{name} {key} now stays fresh for {span(span_seconds)}.")


@ttl.command("list")
@click.argument("name", metavar="[TYPE]", required=False)
@LIMIT
@click.option(
    "--after",
    default="",
    metavar="[TYPE:]KEY",
    help="Go on after this key, as TYPE:KEY unless TYPE is given: the next page.",
)
@AS_JSON
def list_ttls(*, name: str | None, limit: int, after: str, as_json: bool) -> None:
    """List the keys that have a time to live of their own, by type and key."""
    begin = (name, after) if name else _pair(after)
    rows = with_app(lambda app: admin(app).ttls(name, after=begin if after else ("", ""), limit=limit))
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("type"), Column("key"), Column("ttl", number=True), Column("of the type", number=True)]
    cells = ([row["data_type"], row["key"], span(row["ttl_seconds"]), span(row["type_ttl_seconds"])] for row in rows)
    print_table(columns, cells, empty="No key has a time to live of its own.")
    say_more(rows, limit, lambda row: row["key"] if name else f"{row['data_type']}:{row['key']}")


@ttl.command("clear")
@NAME
@KEY
@AS_JSON
@click.pass_context
def clear_ttl(ctx: click.Context, *, name: str, key: str, as_json: bool) -> None:
    """Let the time to live of the type hold for a key again. Exit 1 when it had none of its own."""
    had = with_app(lambda app: admin(app).clear_ttl(name, key))
    if as_json:
        print_json({"type": name, "key": key, "cleared": had})
    else:
        echo(f"{name} {key} has the time to live of its type{'' if had else '; it had none of its own'}.")
    if not had:
        ctx.exit(PROBLEM)


# ── the universe ──


@types.group("universe", cls=Group)
def universe() -> None:
    """Say which keys scheduled types walk through."""


@universe.command("add")
@NAME
@KEYS
@AS_JSON
def add_universe(*, name: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Add keys, or make them active again."""
    _say_changed("added", name, with_app(lambda app: admin(app).add_universe(name, keys)), as_json=as_json)


@universe.command("import")
@NAME
@click.argument("file", type=click.File("r", encoding="utf-8"))
@AS_JSON
def import_universe(*, name: str, file: Any, as_json: bool) -> None:
    """Add the keys of FILE, one per line; - reads standard input.

    Empty lines and those that begin with # are left out.
    """
    keys = [key for line in file if (key := line.strip()) and not key.startswith("#")]
    _say_changed("added", name, with_app(lambda app: admin(app).add_universe(name, keys)), as_json=as_json)


@universe.command("deactivate")
@NAME
@KEYS
@AS_JSON
def deactivate_universe(*, name: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Leave keys out of the walk; what is stored stays."""
    changed = with_app(lambda app: admin(app).deactivate_universe(name, keys))
    _say_changed("deactivated", name, changed, as_json=as_json)


@universe.command("list")
@NAME
@click.option("--inactive", is_flag=True, help="Also those that were deactivated.")
@LIMIT
@AFTER
@AS_JSON
def list_universe(*, name: str, inactive: bool, limit: int, after: str, as_json: bool) -> None:
    """List the keys a type walks through."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], Any]:
        rows = await admin(app).universe(name, after=after, limit=limit, inactive=inactive)
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    cells = ([row["key"], "active" if row["active"] else "inactive", age(row["added_at"], now)] for row in rows)
    print_table([Column("key"), Column("state"), Column("added")], cells, empty=f"The universe of {name} is empty.")
    say_more(rows, limit, lambda row: row["key"])


def admin(app: Livewell) -> TypeAdmin:
    """What the commands stand on."""
    from livewell.refresh.registry.admin import TypeAdmin  # noqa: PLC0415 - heavy

    return TypeAdmin(app.database)


def _pair(after: str) -> tuple[str, str]:
    """TYPE:KEY; names of types have no colon."""
    kind, colon, key = after.partition(":")
    if after and not colon:
        raise click.BadParameter(
            f"{after!r} is no place in the list of all types; that is TYPE:KEY", param_hint="--after"
        )
    return kind, key


def _say_changed(what: str, name: str, changed: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"type": name, what: changed})
    else:
        echo(f"{changed:,} key{'s' * (changed != 1)} of {name} {what}.")


def _paths(files: Sequence[Path], shipped: str | None) -> list[Path]:
    found: list[Path] = []
    for path in files:
        found += sorted(path.glob("*.toml"))[:_FILES_MAX] if path.is_dir() else [path]
    if shipped is not None:
        from livewell.apps.market import type_files  # noqa: PLC0415 - only when asked for

        found += type_files()
    return found


def _content(path: Path) -> bytes:
    from livewell.errors import InvalidDefinition  # noqa: PLC0415 - only for a mistake
    from livewell.refresh.definition.document import FILE_BYTES_MAX  # noqa: PLC0415 - heavy

    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidDefinition(f"{path} cannot be read: {error.strerror}") from None


def _cells(row: dict[str, Any], now: Any) -> list[str]:
    strategy = f"{row['cron']} {row['zone']}" if row["cron"] else "on demand"
    state = f"parked: {row['parked_reason']}" if row["parked_reason"] else "paused" if row["paused"] else "open"
    return [
        row["name"],
        row["upstream"],
        span(row["ttl_seconds"]),
        row["rule"].replace("_", " "),
        row["rows_kind"],
        strategy,
        state,
        str(row["version"]),
        age(row["applied_at"], now),
    ]


def _column(column: dict[str, Any]) -> list[str]:
    name = column["name"] + (" (row key)" if column.get("key") else "")
    return [name, column["type"], "null" if column["nullable"] else "", _bounds(column.get("bounds") or {})]


def _bounds(bounds: dict[str, Any]) -> str:
    """In words: more than 0, at most 100, 8 characters at most."""
    said = []
    if "min" in bounds:
        said.append(f"{'more than' if bounds.get('above_min') else 'at least'} {bounds['min']}")
    if "max" in bounds:
        said.append(f"{'less than' if bounds.get('below_max') else 'at most'} {bounds['max']}")
    left = {name: value for name, value in bounds.items() if name not in ("min", "max", "above_min", "below_max")}
    return ", ".join([*said, *(f"{name.replace('_', ' ')} {_listed(value)}" for name, value in left.items())])


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
