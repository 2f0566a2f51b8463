"""`livewell contacts` as people meet it (O9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from livewell.cli import cli

Run = Callable[..., Result]


@pytest.fixture
def run(livewell_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in this process, on this test's database."""
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)
    return lambda *arguments: CliRunner().invoke(cli, ["contacts", *arguments], prog_name="livewell")


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_life_of_a_contact(run: Run) -> None:
    """Resolved, shown, merged, unmerged, erased."""
    ann = document(run("resolve", "email=Ann@Example.com", "--json"))
    assert ann["outcome"] == "created"
    phone = document(run("resolve", "phone=1", "--json"))
    merged = run("resolve", "email=ann@example.com", "phone=1")
    assert merged.stdout == f"{ann['contact']}  merged\nmerged: {phone['contact']}\n"

    shown = run("show", "email=ANN@example.com").stdout
    assert "livewell contacts unmerge 1 --tenant default" in shown
    assert f"Merged into {ann['contact']}." in run("show", phone["contact"]).stdout
    assert "came back: phone=1" in run("unmerge", "1").stdout
    assert [json.loads(line)["id"] for line in run("list", "--json").stdout.splitlines()] == [
        phone["contact"],
        ann["contact"],
    ]
    assert "Erased: 1 identities" in run("erase", ann["contact"], "--yes").stdout
    assert "nobody  erased" in run("resolve", "email=ann@example.com").stdout
    assert "was erased" in run("show", ann["contact"]).stdout
    assert document(run("resolve", "email=ann@example.com", "--revive", "--json"))["outcome"] == "created"


def test_a_conflict_is_listed_and_decided(run: Run) -> None:
    """The answer tells the command."""
    run("resolve", "external_id=1", "email=a@example.com", "--tenant", "acme")
    said = run("resolve", "external_id=2", "email=a@example.com", "--tenant", "acme").stdout
    assert "livewell contacts decide 1 merge|apart --tenant acme" in said
    assert "1 is the limit" in run("conflicts", "--tenant", "acme").stdout
    assert "Nobody has to decide anything." in run("conflicts").stdout
    assert "They are one contact" in run("decide", "1", "merge", "--tenant", "acme").stdout
    over = run("decide", "1", "merge", "--tenant", "acme")
    assert over.exit_code == 1
    assert "livewell contacts conflicts --tenant acme" in over.stderr


def test_policies_are_listed_and_changed(run: Run) -> None:
    """Of one type, and of all."""
    assert "noreply@" in run("policy", "email").stdout
    changed = document(run("policy", "phone", "--merges", "ask", "--max", "2", "--json"))
    assert (changed["merges"], changed["max_per_contact"]) == ("ask", 2)
    assert run("policy").stdout.count("\n") == 6
    assert run("policy", "--max", "2").exit_code == 2


def test_pages_go_on_where_they_say(run: Run) -> None:
    """The cursor of a line is the place after it."""
    for n in range(3):
        run("resolve", f"email={n}@example.com")
    first = [json.loads(line) for line in run("list", "--limit", "2", "--json").stdout.splitlines()]
    second = [json.loads(line) for line in run("list", "--after", first[-1]["cursor"], "--json").stdout.splitlines()]
    assert [one["identities"][0]["value"][0] for one in first + second] == ["2", "1", "0"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("resolve", "ann@example.com"), 2, "write TYPE=VALUE"),
        (("resolve", "Email=x"), 2, "a type is like email"),
        (("show", "nobody"), 2, "ids are UUIDs"),
        (("show", "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11"), 1, "tenant default has none"),
        (("show", "email=a@b.c"), 1, "Nobody has this identity."),
        (("unmerge", "7"), 1, "merge 7"),
        (("list", "--after", "x"), 2, "give the `cursor`"),
        (("resolve", "email=a@b.c", "--tenant", ""), 2, "1 to 200 bytes"),
    ],
)
def test_what_cannot_be_done_is_said(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    """With the exit code of its kind."""
    result = run(*arguments)
    assert (result.exit_code, said in result.output) == (code, True), result.output
