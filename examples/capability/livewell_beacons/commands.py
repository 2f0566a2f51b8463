"""`livewell beacons`: who reported when, and who has fallen silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import with_app
from livewell.cli.command import command
from livewell.cli.output import AS_JSON, Column, print_json, print_table
from livewell.words import span
from livewell_beacons.beacons import Beacons

if TYPE_CHECKING:
    from livewell import Livewell


@command("beacons")
@click.option("--forget", metavar="NAME", help="Delete a beacon that will not come back.")
@AS_JSON
def beacons(*, forget: str | None, as_json: bool) -> None:
    """List beacons, and say which are silent."""

    async def act(app: Livewell) -> list[dict[str, Any]]:
        if forget is not None:
            await app.database.call("SELECT livewell.forget_beacon(%s)", (forget,))
        return await Beacons(app).all()

    found = with_app(act)
    if as_json:
        print_json({"items": found})
        return
    rows = [[one["name"], span(one["silent_seconds"]), "silent" if one["late"] else ""] for one in found]
    print_table([Column("beacon"), Column("seen ago"), Column("")], rows, empty="No beacon has reported yet.")
