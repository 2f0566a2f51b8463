"""Contacts, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, View

_HERE = Path(__file__).parent
_PAGES = "livewell.server.dashboard.pages.contacts"

CAPABILITY = Capability(
    name="contacts",
    migrations=_HERE / "sql",
    api={"contacts": "livewell.apps.contacts.contacts:Contacts.of"},
    housekeeping=(Chore("SELECT livewell.prune_contacts(%s)", lambda _: (1000,)),),
    gauges="livewell.apps.contacts.gauges:GAUGES",
    checks="livewell.apps.contacts.doctor:CHECKS",
    stuck="livewell.apps.contacts.stuck:stuck",
    routes=("livewell.server.routes.contacts:router",),
    commands=(CommandEntry("contacts", "livewell.cli.commands.contacts:contacts", "Look and mend", 115),),
    views=(
        View("/contacts", "Who is this?", f"{_PAGES}:panels", "Contacts", "operate"),
        View("/contacts/{id}", "Who is this, and since when?", f"{_PAGES}:one_contact", scope="operate"),
    ),
    acts=(
        Act("/contacts/find", f"{_PAGES}:find", page="/contacts"),
        Act("/contacts/conflicts/{id}/decide", f"{_PAGES}:decide", page="/contacts"),
        Act("/contacts/merges/{id}/undo", f"{_PAGES}:unmerge", page="/contacts"),
        Act("/contacts/{id}/erase", f"{_PAGES}:erase"),
    ),
    templates=_HERE / "templates",
)
