"""X10: what one client may have of a bounded thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.shares import share


@pytest.mark.parametrize(
    ("used", "user", "stranger"),
    [(0, 10, 10), (45, 10, 10), (50, 10, 8), (75, 5, 3), (89, 2, 1), (90, 2, 0), (99, 1, 0), (100, 0, 0), (101, 0, 0)],
)
def test_a_share_is_whole_while_half_is_free_and_shrinks_with_what_is_left(used: int, user: int, stranger: int) -> None:
    """At least one, while there is a place; strangers find the last tenth taken."""
    assert (share(10, used, 100), share(10, used, 100, stranger=True)) == (user, stranger)


def clients_until_full(most: int, places: int) -> int:
    """How many strangers, each taking all it may, until one gets nothing."""
    used = clients = 0
    while (more := share(most, used, places, stranger=True)) > 0:
        has = 0
        while has < more:
            has, used = has + 1, used + 1
            more = share(most, used, places, stranger=True)
        clients += 1
    return clients


def test_it_takes_many_addresses_to_fill_what_strangers_may_have() -> None:
    """The figures of docs/reference/streams.md: keys, streams and waits by default.

    Without shares it took 1, 25 and 10.
    """
    assert [clients_until_full(*bound) for bound in ((1000, 20_000), (200, 5000), (10, 100))] == [88, 91, 22]


@given(most=st.integers(1, 50), places=st.integers(2, 500))
def test_a_user_finds_a_place_however_many_strangers_there_are(most: int, places: int) -> None:
    """Strangers that take all they may leave a tenth, and at least one."""
    used = 0
    while share(most, used, places, stranger=True) > 0:
        used += 1

    assert 1 <= share(most, used, places) <= most
