"""L8: the demo's login link is for a person."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from livewell import Settings
from livewell.apps.market.demo.screen import Scene, Screen
from livewell.cli.commands import demo


@pytest.mark.parametrize(
    ("print_link", "link"), [(True, "http://127.0.0.1:1/login#lw_x"), (False, "http://127.0.0.1:1")]
)
async def test_where_nobody_reads_there_is_only_the_address(
    print_link: bool, link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal, or if asked for, it logs a browser in; no link is made that is not printed."""

    async def made(*_: object, person: str) -> str:
        assert print_link
        return "lw_x"

    monkeypatch.setattr("livewell.server.auth.login_links.make_link", made)
    door = demo._door(print_link=print_link)

    assert await door.link(None, Settings(), "http://127.0.0.1:1") == link  # type: ignore[arg-type] # no database is asked


def test_the_screen_says_how_to_get_a_link() -> None:
    """In words, and with the option."""
    out = io.StringIO()
    Screen(Console(file=out, width=300)).show(Scene(link="http://127.0.0.1:1"))

    assert "open http://127.0.0.1:1  (no login link here" in out.getvalue()
    assert "--print-link" in out.getvalue()
