"""Time zones by their names in the tz database. Pure."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["read_zone"]

# Files beside the zones that can be read as one: the machine's own, a template, a placeholder; and
# other reckonings of all of them.
_NO_ZONES = frozenset({"posixrules", "localtime", "Factory"})
_NO_FOLDERS = ("posix/", "right/")


def read_zone(name: str) -> ZoneInfo:
    """Read a time zone by its name.

    Raises ValueError for a name that is no zone, or that means something else on each machine.
    """
    if not isinstance(name, str) or name in _NO_ZONES or name.startswith(_NO_FOLDERS):
        raise ValueError(f"{name!r} is not a time zone")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise ValueError(f"{name!r} is not a time zone") from error
