"""`livewell settings`: what is in force, and what differs from the defaults."""

from __future__ import annotations

from livewell.cli.command import command
from livewell.cli.output import AS_JSON, Column, print_json, print_table


@command("settings")
@AS_JSON
def settings(*, as_json: bool) -> None:
    """Show the settings in force, passwords hidden.

    They come from LIVEWELL_* and DATABASE_URL, then livewell.toml, then the defaults.
    """
    from livewell.settings import Settings  # noqa: PLC0415 - heavy

    loaded = Settings.load()
    if as_json:
        print_json(loaded.typed())
        return
    effective, defaults = loaded.masked(), Settings().masked()
    rows = [
        (name, value, "" if value == defaults[name] else f"default: {defaults[name]}")
        for name, value in effective.items()
    ]
    print_table([Column("setting"), Column("value"), Column("")], rows, empty="There are no settings.")
