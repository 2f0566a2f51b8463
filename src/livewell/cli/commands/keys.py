"""`livewell keys`: who may use the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.output import AS_JSON, LIMIT, Column, place_by_id, print_json, print_table, say_more
from livewell.cli.terminal import echo
from livewell.words import age

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.server.auth.key_admin import Created, KeyAdmin


@group("keys")
def keys() -> None:
    """Make, list and revoke API keys; print a login link."""


@keys.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    default="view,subscribe",
    show_default=True,
    metavar="A,B",
    help="What it may do: view, subscribe, export, observe, operate, admin.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="A type it may read; may be repeated. None: all. Such a key cannot operate.",
)
@click.option("--public", is_flag=True, help="It may live in a web page: view and subscribe only, anonymous viewers.")
@click.option(
    "--sessions-max",
    type=int,
    metavar="N",
    help="Sessions that the viewers of a public key may have at a time, one address a tenth of them. Not given: "
    "LIVEWELL_PUBLIC_SESSIONS_MAX.",
)
@click.option("--expires", metavar="TIME", help="For how long it is good, like 90d; never ends if not given.")
@AS_JSON
def create(
    *,
    name: str,
    scopes: str,
    types: tuple[str, ...],
    public: bool,
    sessions_max: int | None,
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a key, and print it: now, and never again."""
    from livewell.duration import seconds  # noqa: PLC0415 - heavy

    span = None if expires is None else seconds(expires, "expires")
    given = [word.strip() for word in scopes.split(",") if word.strip()]

    async def act(app: Livewell) -> Created:
        return await admin(app).create(
            name, scopes=given, types=types, public=public, seconds=span, sessions_max=sessions_max
        )

    made = with_app(act)
    if as_json:
        print_json({"id": made.id, "expires_at": made.expires_at}, as_is={"key": made.text})
    else:
        echo(made.text)
        echo(f"Keep it: only its hash is stored. Take it back with: livewell keys revoke {made.id}", err=True)


@keys.command("list")
@click.option("--all", "everything", is_flag=True, help="Also login links and logins of browsers.")
@LIMIT
@click.option("--after", metavar="ID", help="Go on after this key: the next page.")
@AS_JSON
def list_keys(*, everything: bool, limit: int, after: str | None, as_json: bool) -> None:
    """List keys, the newest first; never their secrets."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await admin(app).keys(everything=everything, after=after, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column(name) for name in ("id", "name", "state", "scopes", "types", "made", "used", "expires")]
    print_table(columns, [_cells(row, now) for row in rows], empty="There are no keys yet: livewell keys create NAME")
    say_more(rows, limit, place_by_id)


@keys.command("revoke")
@click.argument("key_id", metavar="ID")
@AS_JSON
@click.pass_context
def revoke(ctx: click.Context, *, key_id: str, as_json: bool) -> None:
    """Refuse a key from now on.

    Servers that remember it do so within LIVEWELL_KEY_CACHE_SECONDS.
    """
    found = with_app(lambda app: admin(app).revoke(key_id))
    if as_json:
        print_json({"id": key_id, "revoked": found})
    else:
        echo("Revoked." if found else "There is no such key; see: livewell keys list --all")
    if not found:
        ctx.exit(PROBLEM)


@keys.command("login")
@click.option("--address", metavar="URL", help="Where the server is reached, if not on this machine's own port.")
@AS_JSON
def login(*, address: str | None, as_json: bool) -> None:
    """Print a link that logs a browser in, once (LIVEWELL_LINK_SECONDS)."""
    from livewell.server.auth.login_links import link_address, make_link  # noqa: PLC0415 - heavy

    async def act(app: Livewell) -> str:
        base = address or f"http://{app.settings.http_host}:{app.settings.http_port}"
        return link_address(base.rstrip("/"), await make_link(app.database, app.settings))

    link = with_app(act)
    if as_json:
        print_json({}, as_is={"login": link})
    else:
        echo(link)


def admin(app: Livewell) -> KeyAdmin:
    """What the commands stand on."""
    from livewell.server.auth.key_admin import KeyAdmin  # noqa: PLC0415 - heavy

    return KeyAdmin(app.database)


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    state = "good" if row["usable"] else "revoked" if row["revoked_at"] else "expired"
    kind = "" if row["kind"] == "key" else f" ({row['kind']})"
    return [
        row["id"],
        row["name"] + kind,
        state + (", public" if row["public"] else ""),
        ", ".join(row["scopes"]),
        ", ".join(row["types"] or ()),
        age(row["created_at"], now),
        age(row["last_used_at"], now) or "never",
        age(row["expires_at"], now),
    ]
