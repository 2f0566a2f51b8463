"""L13: a zone is the name of a place in the tz database, and means the same on every machine."""

from __future__ import annotations

import pytest

from livewell.errors import ConfigurationError, InvalidOption
from livewell.limits.notation import resets
from livewell.refresh.registry.admin import _check_schedule
from livewell.schedule.cron import check_zone
from livewell.zones import read_zone

NONE = [
    *("posixrules", "localtime", "Factory", "posix/Europe/Paris", "right/UTC", "posix", "right"),
    *("", "Nowhere/Land", "../etc/passwd", "/etc/localtime", "tzdata.zi", "Europe", "Europe/Paris\x00"),
]


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_zone_is_refused(name: str) -> None:
    """Wherever one is written."""
    with pytest.raises(ValueError, match="is not a time zone"):
        read_zone(name)
    with pytest.raises(ConfigurationError):
        check_zone(name)
    if name:
        with pytest.raises(ConfigurationError):
            resets(f"17:30 {name}", "limiter x")
    with pytest.raises(InvalidOption):
        _check_schedule("0 2 * * *", name)


@pytest.mark.parametrize("name", ["UTC", "Europe/Paris", "America/New_York", "Etc/GMT+5", "EST5EDT", "GB"])
def test_a_zone_is_taken(name: str) -> None:
    """Also an old name of one."""
    assert read_zone(name).key == name
    check_zone(name)
    assert resets(f"17:30 {name}", "limiter x")[1] == name
