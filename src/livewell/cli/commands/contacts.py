"""`livewell contacts`: who is this, what was merged, and what somebody has to decide."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from livewell.apps.contacts.contacts import DEFAULT_TENANT, Contacts, Record
from livewell.apps.contacts.model import Decision, Merges
from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.output import (
    AFTER,
    AS_JSON,
    LIMIT,
    Column,
    place_by_id,
    print_facts,
    print_json,
    print_table,
    say_more,
)
from livewell.cli.terminal import echo
from livewell.errors import InvalidOption
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell

TENANT = click.option("--tenant", default=DEFAULT_TENANT, show_default=True, metavar="NAME", help="Whose contacts.")
NUMBER = click.IntRange(1, 2**63 - 1)
SHORT = 3


@group("contacts")
def contacts() -> None:
    """Look people up by their identities; merge, unmerge and erase them."""


@contacts.command("resolve")
@click.argument("identities", nargs=-1, required=True, metavar="TYPE=VALUE…")
@TENANT
@click.option("--request", metavar="ID", help="An id of this call: asked again with it, the answer is the same.")
@click.option("--revive", is_flag=True, help="Make a person again who was erased.")
@AS_JSON
def resolve(*, identities: tuple[str, ...], tenant: str, request: str | None, revive: bool, as_json: bool) -> None:
    """Say who has these identities; make, add to or merge contacts as needed."""
    pairs = [_pair(text) for text in identities]
    who = with_app(lambda app: Contacts.of(app).resolve(pairs, tenant=tenant, request=request, revive=revive))
    if as_json:
        print_json({**asdict(who), "merged": [str(one) for one in who.merged]})
        return
    echo(f"{who.contact or 'nobody'}  {who.outcome}")
    for other in who.merged:
        echo(f"merged: {other}")
    for conflict in who.conflicts:
        echo(f"perhaps one person: livewell contacts decide {conflict} merge|apart --tenant {tenant}")
    if who.blocked or who.erased:
        echo(
            f"left out: {', '.join([*(f'{one} (blocked)' for one in who.blocked), *(f'{one} (erased)' for one in who.erased)])}"
        )


@contacts.command("show")
@click.argument("who", metavar="ID|TYPE=VALUE")
@TENANT
@AS_JSON
@click.pass_context
def show(ctx: click.Context, *, who: str, tenant: str, as_json: bool) -> None:
    """Show a contact by its id, or by one of its identities."""

    async def fetch(app: Livewell) -> tuple[Record | None, datetime]:
        api = Contacts.of(app)
        found = await (api.find(*_pair(who), tenant=tenant) if key is None else api.show(key, tenant=tenant))
        return found, await database_now(app)

    key = None if "=" in who else _id(who)
    found, now = with_app(fetch)
    if as_json:
        print_json(found or {"id": None})
    elif found is None:
        echo("Nobody has this identity.")
    else:
        _tell(found, now, tenant)
    if found is None:
        ctx.exit(PROBLEM)


@contacts.command("list")
@TENANT
@LIMIT
@click.option("--after", metavar="CURSOR", help="Go on after this `cursor` of the JSON output: the next page.")
@AS_JSON
def list_contacts(*, tenant: str, limit: int, after: str | None, as_json: bool) -> None:
    """List contacts, the newest first."""

    async def fetch(app: Livewell) -> tuple[list[Record], datetime]:
        rows = await Contacts.of(app).page(tenant=tenant, after=_place(after), limit=limit)
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json({**row, "cursor": _cursor(row)})
        return
    columns = [Column("contact"), Column("since"), Column("known by", elastic=True)]
    cells = ([str(row["id"]), age(row["created_at"], now), known_by(row["identities"])] for row in rows)
    print_table(columns, cells, empty=f"Tenant {tenant} has no contacts.")
    say_more(rows, limit, _cursor)


@contacts.command("conflicts")
@TENANT
@LIMIT
@AFTER
@AS_JSON
def conflicts(*, tenant: str, limit: int, after: int, as_json: bool) -> None:
    """List pairs of contacts that are perhaps one person."""

    async def fetch(app: Livewell) -> tuple[list[Record], datetime]:
        rows = await Contacts.of(app).conflicts(tenant=tenant, after=after, limit=limit)
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("id", number=True), Column("one", elastic=True), Column("other", elastic=True)]
    cells = (
        [
            number(row["id"]),
            *(known_by(side["identities"]) for side in row["sides"]),
            row["why"],
            age(row["opened_at"], now),
        ]
        for row in rows
    )
    print_table(
        [*columns, Column("why", elastic=True), Column("opened")], cells, empty="Nobody has to decide anything."
    )
    say_more(rows, limit, place_by_id)


@contacts.command("decide")
@click.argument("conflict", type=NUMBER, metavar="CONFLICT")
@click.argument("decision", type=click.Choice(["merge", "apart"]))
@TENANT
@AS_JSON
def decide(*, conflict: int, decision: Decision, tenant: str, as_json: bool) -> None:
    """Say that two contacts are one person (merge), or two (apart)."""
    found = with_app(lambda app: Contacts.of(app).decide(conflict, decision, tenant=tenant))
    if as_json:
        print_json(found)
    else:
        echo(f"They are one contact: {found['contact']}" if decision == "merge" else "They are kept apart from now on.")


@contacts.command("unmerge")
@click.argument("merge", type=NUMBER, metavar="MERGE")
@TENANT
@AS_JSON
def unmerge(*, merge: int, tenant: str, as_json: bool) -> None:
    """Take a merge back; its number is in `contacts show`."""
    found = with_app(lambda app: Contacts.of(app).unmerge(merge, tenant=tenant))
    if as_json:
        print_json(found)
        return
    echo(f"{found['loser']} lives again, beside {found['winner']}.")
    told = (("came back", "restored"), ("arrived later and stayed", "stayed"), ("could not be split", "not_split"))
    for words, name in told:
        if found[name]:
            echo(f"{words}: {', '.join('='.join(one) for one in found[name])}")
    if found["fields_not_split"]:
        echo(f"fields that were changed since, and stayed: {', '.join(found['fields_not_split'])}")


@contacts.command("erase")
@click.argument("contact", type=click.UUID, metavar="ID")
@TENANT
@click.option("--yes", is_flag=True, help="Do not ask.")
@AS_JSON
def erase(*, contact: UUID, tenant: str, yes: bool, as_json: bool) -> None:
    """Erase a person for good; an identity comes back only with `resolve --revive`."""
    if not yes:
        click.confirm(f"Erase {contact} of tenant {tenant}? It cannot be undone", abort=True, err=True)
    found = with_app(lambda app: Contacts.of(app).erase(contact, tenant=tenant))
    if as_json:
        print_json(found)
    else:
        echo(f"Erased: {number(found['identities'])} identities of {', '.join(found['ids'])}.")


@contacts.command("policy")
@click.argument("kind", required=False, metavar="[TYPE]")
@TENANT
@click.option("--strength", type=click.IntRange(0, 1000), metavar="N", help="The stronger of two says who it is.")
@click.option("--max", "most", type=click.IntRange(1, 10_000), metavar="N", help="How many one contact may have.")
@click.option("--merges", type=click.Choice(["auto", "ask", "never"]), help="Whether it may merge contacts.")
@click.option("--block", multiple=True, metavar="VALUE", help="Is no identity, as noreply@; all of them, repeated.")
@click.option("--fold-plus/--keep-plus", default=None, help="E-mail: whether ann+shop@ is ann@.")
@click.option("--fold-dots/--keep-dots", default=None, help="E-mail: whether a.nn@ is ann@.")
@AS_JSON
def policy(
    *,
    kind: str | None,
    tenant: str,
    strength: int | None,
    most: int | None,
    merges: Merges | None,
    block: tuple[str, ...],
    fold_plus: bool | None,
    fold_dots: bool | None,
    as_json: bool,
) -> None:
    """List policies of a tenant, or change that of a type."""
    wanted: dict[str, Any] = {"strength": strength, "limit": most, "merges": merges, "blocked": block or None}
    wanted |= {"fold_plus": fold_plus, "fold_dots": fold_dots}
    is_change = any(value is not None for value in wanted.values())
    if is_change and kind is None:
        raise InvalidOption("say of which type: livewell contacts policy email --max 3")

    async def act(app: Livewell) -> list[Record]:
        if is_change and kind is not None:
            return [await Contacts.of(app).set_policy(kind, tenant=tenant, **wanted)]
        return [one for one in await Contacts.of(app).policies(tenant=tenant) if kind in (None, one["type"])]

    rows = with_app(act)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("type"), Column("strength", number=True), Column("max", number=True), Column("merges")]
    cells = (
        [
            row["type"],
            number(row["strength"]),
            number(row["max_per_contact"]),
            row["merges"],
            _folds(row),
            ", ".join(row["blocked"]),
        ]
        for row in rows
    )
    print_table(
        [*columns, Column("folds"), Column("blocked", elastic=True)], cells, empty=f"There is no policy of {kind}."
    )


def known_by(identities: list[dict[str, str]]) -> str:
    """A few identities in one line."""
    told = ", ".join(f"{one['type']}={one['value']}" for one in identities[:SHORT])
    return told + (", …" if len(identities) > SHORT else "")


def _pair(text: str) -> tuple[str, str]:
    kind, separator, value = text.partition("=")
    if not separator:
        raise InvalidOption(f"identity {text!r}: write TYPE=VALUE, for example email=ann@example.com")
    return kind, value


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidOption(
            f"contact {text[:60]!r}: ids are UUIDs, see: livewell contacts list; of an identity write TYPE=VALUE"
        ) from None


def _cursor(row: Any) -> str:
    return f"{row['created_at'].isoformat()} {row['id']}"


def _place(after: str | None) -> tuple[datetime, UUID] | None:
    if after is None:
        return None
    at, _, key = after.partition(" ")
    try:
        return datetime.fromisoformat(at), UUID(key)
    except ValueError:
        raise InvalidOption(
            f"--after {after!r}: give the `cursor` of a line of: livewell contacts list --json"
        ) from None


def _folds(row: Record) -> str:
    return ", ".join(word for word, on in (("+", row["fold_plus"]), (".", row["fold_dots"])) if on)


def _tell(found: Record, now: datetime, tenant: str) -> None:
    if found["state"] != "live":
        echo(f"{found['id']} was erased." if found["state"] == "erased" else f"Merged into {found['merged_into']}.")
        return
    since = age(datetime.fromisoformat(found["created_at"]), now)
    facts: dict[str, object] = {"contact": found["id"], "since": since, **found["fields"]}
    print_facts({**facts, "answers for": ", ".join(found["merged_ids"]) or "no other id"})
    echo()
    for one in found["identities"]:
        echo(f"{one['type']}={one['value']}")
    for one in found["merges"]:
        undone = " (undone)" if one["undone_at"] else f"; undo: livewell contacts unmerge {one['id']} --tenant {tenant}"
        echo(f"\nmerge {one['id']}: {one['loser']} into {one['winner']}, {one['why']}{undone}")
    for one in found["conflicts"]:
        said = "kept apart from" if one["state"] == "apart" else f"conflict {one['id']}: perhaps the same as"
        echo(f"\n{said} {one['with']}: {one['why']}")
