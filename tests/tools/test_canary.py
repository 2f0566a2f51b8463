"""The canary finds what is planted (F-F5)."""

from __future__ import annotations

import psycopg
import pytest

from tests.support import canary

SECRET = 'a secret/with+marks=and "more"'  # noqa: S105 - of nobody


@pytest.mark.parametrize("planted", sorted(canary.forms(SECRET)))
def test_a_secret_is_found_however_it_is_written(planted: str) -> None:
    """As it is, in an address, in JSON, in base64."""
    assert canary.leaks({"here": f"x{planted}y", "there": "nothing"}, [SECRET]) == ["here"]


def test_a_secret_is_found_in_any_row(livewell_dsn: str) -> None:
    """In a table of ours and in one that somebody made."""
    key = "lw_0123456789abcdef_ghijklmn"
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute("INSERT INTO livewell.queue (name, limiter, created_at) VALUES ('mail', %s, now())", (key,))
        admin.execute("CREATE TABLE public.planted AS SELECT %s::text AS note", (f"https://x/?key={key}",))

    assert canary.leaks(canary.rows(livewell_dsn), [key]) == ["table livewell.queue", "table public.planted"]
