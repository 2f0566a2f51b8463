"""Every list of the command line turns its page, and says how (R2, and all its siblings)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator

import click
import psycopg
import pytest
from click.testing import Result

from livewell.apps.market import TYPES
from livewell.cli import cli
from tests.apps.test_cli_types import run  # noqa: F401 - the fixture
from tests.support.listed_rows import FILL

Run = Callable[..., Result]
Place = Callable[[dict[str, object]], object]


def by_id(row: dict[str, object]) -> object:
    """The place of a row where lists are ordered by id."""
    return row["id"]


# Every command that has --limit, its further arguments, the option that turns the page, and where a
# row stands.
LISTS: dict[tuple[str, ...], tuple[str, Place]] = {
    ("jobs", "list"): ("--after", by_id),
    ("dead", "list"): ("--after", by_id),
    ("alerts", "list"): ("--after", by_id),
    ("alerts", "past"): ("--before", by_id),
    ("keys", "list"): ("--after", by_id),
    ("runs", "list"): ("--before", by_id),
    ("runs", "history", "nightly"): ("--before", by_id),
    ("audit", "list"): ("--before", by_id),
    ("warnings", "list"): ("--after", lambda row: row["cursor"]),
    ("types", "ttl", "list"): ("--after", lambda row: f"{row['data_type']}:{row['key']}"),
    ("types", "ttl", "list", "quote"): ("--after", lambda row: row["key"]),
    ("types", "universe", "list", "quote"): ("--after", lambda row: row["key"]),
    ("outbox", "topics", "list"): ("--after", lambda row: row["name"]),
    ("outbox", "dead", "list"): ("--after", lambda row: f"{row['number']}:{row['sink']}"),
    ("outbox", "blocks"): ("--after", lambda row: row["cursor"]),
    ("outbox", "replay", "list"): ("--before", by_id),
    ("contacts", "list"): ("--after", lambda row: row["cursor"]),
    ("contacts", "conflicts"): ("--after", by_id),
    ("exports", "list"): ("--after", lambda row: row["created_at"]),
    ("resumes", "list", "--user", "key:paged"): ("--after", lambda row: row["cursor"]),
}
# Documents that changed in the same instant, and exports of them.
DOCUMENTS = """
SELECT livewell.create_resume('key:paged', ('c5b4ff6c-7a2b-4f0e-9a61-00000000000' || n)::uuid, NULL, 'CV ' || n, '{"basics": {"name": "Ann Lee"}}', 100, 1000000)
FROM generate_series(1, 3) AS n;
INSERT INTO livewell.export (id, job_id, created_at, finished_at, user_id, kind, document_id, document_version, state, reason, detail, file_name, options, options_hash)
SELECT ('c5b4ff6c-7a2b-4f0e-9a61-00000000001' || n)::uuid, 9000 + n, now() - n * interval '1 minute', now(), 'key:paged', 'resume', 'cv', '1', 'failed', 'options', 'a field', 'cv.pdf', '{"template": "modern"}', sha256('{}')
FROM generate_series(1, 3) AS n;
UPDATE livewell.resume_document SET changed_at = now();
"""


@pytest.fixture
def filled(run: Run, livewell_dsn: str) -> Run:  # noqa: F811 - the fixture above
    """Rows for everything that is listed."""
    files = [str(TYPES / name) for name in ("fmp.toml", "quote.toml", "profile.toml")]
    assert run("types", "apply", *files).exit_code == 0
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute(FILL)
        admin.execute(DOCUMENTS)
    return run


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_turns_its_page(filled: Run, words: tuple[str, ...]) -> None:
    """Row by row it is the whole list.

    Seen failing: `types ttl list --limit 1 --after AAPL` gave the same key for ever; `keys list`
    had no next page.
    """
    turn, place = LISTS[words]
    whole = rows(filled(*words, "--json"))
    found: list[dict[str, object]] = []
    for _ in range(60):
        after = [turn, str(place(found[-1]))] if found else []
        page = rows(filled(*words, "--limit", "1", *after, "--json"))
        if not page:
            break
        found += page

    assert [place(row) for row in found] == [place(row) for row in whole]
    assert len(found) >= 3


@pytest.mark.parametrize("words", [words for words in LISTS if words[0] != "warnings"], ids=" ".join)
def test_a_full_page_says_how_to_see_the_next(filled: Run, words: tuple[str, ...]) -> None:
    """What it says works as it is printed."""
    turn, _ = LISTS[words]
    first = filled(*words, "--limit", "1").stdout
    told = shlex.split(first.splitlines()[-1].partition("for more: ")[2])
    second = filled(*words, "--limit", "1", *told)

    assert told[0] == turn
    assert second.exit_code == 0
    assert second.stdout.splitlines()[2] != first.splitlines()[2]


def test_no_list_is_forgotten_here() -> None:
    """Whatever has --limit has a way to go on, and is tried above."""
    bounded = {path for path, command in commands(cli) if any(one.name == "limit" for one in command.params)}

    assert bounded == {words[: len(path)] for words in LISTS for path in bounded if words[: len(path)] == path}


def test_a_place_without_its_type_is_wrong_usage(filled: Run) -> None:
    """Where the list is of all types, a key alone says nothing."""
    wrong = filled("types", "ttl", "list", "--after", "AAPL")

    assert wrong.exit_code == 2
    assert "TYPE:KEY" in wrong.output


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below a group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        elif found is not None:
            yield (*path, name), found


def rows(result: Result) -> list[dict[str, object]]:
    """One JSON object a line."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]
