"""Wrong usage exits with 2 in every command, and every message says what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import psycopg
import pytest
from click.testing import Result

from livewell import Livewell
from livewell.apps.market import TYPES
from livewell.cli import cli
from livewell.errors import ConfigurationError, InvalidOption
from tests.apps.test_cli_pages import commands
from tests.apps.test_cli_types import run  # noqa: F401 - the fixture

Run = Callable[..., Result]
# What stands for a value that is free: the name of something, a key. Whatever else an option takes
# has a form, and nonsense does not have it.
FREE = {
    "TYPE",
    "KEY",
    "KEY...",
    "NAME",
    "QUEUE",
    "UPSTREAM",
    "SINK",
    "TOPIC",
    "CHANNEL",
    "TASK",
    "TEXT",
    "ADDRESS",
    "URL",
    "CURSOR",
    "ID",
    "[TYPE]",
    "[TYPE:]KEY",
    "[APP]",
    "[PSQL ARGUMENT]...",
    "RULE",
    "DIR",
    "GROUP",
    "WHO",
    "WHAT",
    "USER",
    "[TEXT]",
    "FILE",
}
A_UUID = "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11"
PLAIN = {
    "FILE...": str(TYPES),
    "file": "-",
    "ID": "1",
    "ID...": "1",
    "URL": "http://127.0.0.1:9",
    "JSON": "{}",
    "TIME": "5s",
}


def wrong_usages() -> list[tuple[str, ...]]:
    """Every command with every value that has a form, once, given nonsense."""
    found: list[tuple[str, ...]] = []
    for path, command in commands(cli):
        needed = [one for one in command.params if one.required]
        for one in command.params:
            name = one.metavar or one.name or ""
            text = isinstance(one.type, click.types.StringParamType | click.types.UnprocessedParamType)
            text = text or (isinstance(one.type, click.Path) and not one.type.exists)  # a name of what is made
            if getattr(one, "is_flag", False) or (text and name in FREE) or (path[0] == "keys" and one.name == "name"):
                continue
            words = [*path]
            for other in needed:
                plain = PLAIN.get(other.metavar or other.name or "", "quote")
                plain = A_UUID if isinstance(other.type, click.types.UUIDParameterType) else plain
                value = "nonsense" if other is one else plain
                words += [other.opts[0], value] if isinstance(other, click.Option) else [value]
            if one not in needed:
                words += [one.opts[0], "nonsense"] if isinstance(one, click.Option) else ["nonsense"]
            found.append(tuple(words))
    return found


@pytest.fixture
def applied(run: Run) -> Run:  # noqa: F811 - the fixture above
    """With a type to be wrong about."""
    assert run("types", "apply", str(TYPES / "fmp.toml"), str(TYPES / "quote.toml")).exit_code == 0
    return run


def test_nonsense_is_wrong_usage_in_every_command(applied: Run) -> None:
    """Exit 2.

    Seen failing on 0.5.0 with 1: `get --wait nonsense`, `get --max-age`, `keys create --scope`,
    `--expires`, `types ttl set … TIME`.
    """
    tried = wrong_usages()
    codes = {" ".join(words): applied(*words).exit_code for words in tried}

    assert {words: code for words, code in codes.items() if code != 2} == {}
    assert len(tried) > 40


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("get", "quote", "AAPL", "--wait", "soon"), '"30s"'),
        (("get", "quote", "AAPL", "--wait", "1h"), "300 s"),
        (("keys", "create", "me", "--scope", "foo"), "view, subscribe, export, observe, operate, admin"),
        (("types", "ttl", "set", "quote", "AAPL", "401d"), "400 days"),
        (("types", "universe", "add", "quote", "lower case"), "lower case"),
        (("exports", "list", "--after", "2026-01-01T00:00:00"), "an instant with its zone"),
        (("resumes", "list", "--after", "nonsense"), "livewell resumes list --json"),
        (("resumes", "list", "--after", f"2026-01-01T00:00:00/{A_UUID}"), "livewell resumes list --json"),
        (("resumes", "export", "nonsense"), "is not a valid UUID"),
    ],
)
def test_the_message_says_what_is_allowed(applied: Run, words: tuple[str, ...], told: str) -> None:
    """Exit 2 and the allowed values, also for values of the right form that are out of bounds."""
    result = applied(*words)

    assert (result.exit_code, told in result.output) == (2, True), result.output


def test_a_key_of_a_type_that_is_not_there_is_refused(applied: Run) -> None:
    """Seen failing on 0.5.0: `keys create --type nosuch` made a key, exit 0."""
    wrong = applied("keys", "create", "me", "--type", "quote", "--type", "nosuch")

    assert wrong.exit_code == 1
    assert 'type "nosuch" is not in the registry' in wrong.output
    assert applied("keys", "list", "--json").output == ""


def test_a_public_key_says_how_many_sessions_it_may_have(applied: Run) -> None:
    """R3: as given, or as the setting says.

    A key that is bound to types cannot operate (M2; in 0.5.0 it could).
    """
    assert applied("keys", "create", "page", "--public", "--sessions-max", "50").exit_code == 0
    assert applied("keys", "create", "other", "--public", "--type", "quote").exit_code == 0
    refused = applied("keys", "create", "bound", "--type", "quote", "--scope", "view,operate")

    listed = [json.loads(line) for line in applied("keys", "list", "--json").output.splitlines()]
    assert [(row["name"], row["sessions_max"]) for row in listed] == [("other", None), ("page", 50)]
    assert (refused.exit_code, "cannot operate" in refused.output) == (2, True)


def test_a_file_as_data_dir_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Seen failing on 0.5.0: "unexpected NotADirectoryError … a mistake in Livewell"."""
    monkeypatch.delenv("DATABASE_URL")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIVEWELL_DATA_DIR", str(tmp_path / "file"))
    wrong = run("jobs", "list")

    assert wrong.exit_code == 2
    assert "is not a folder" in wrong.output


def test_a_misspelt_name_in_a_type_file_is_named(applied: Run, tmp_path: Path) -> None:
    """Seen failing on 0.5.0: `stratgy = …` gave only "strategy is missing"."""
    file = tmp_path / "wrong.toml"
    file.write_text((TYPES / "quote.toml").read_text().replace("strategy =", "stratgy ="))
    wrong = applied("types", "apply", str(file))

    assert wrong.exit_code == 2
    assert '"strategy" is missing; is "stratgy" meant to be it?' in wrong.output


def test_settings_are_typed_for_programs(run: Run) -> None:  # noqa: F811
    """Seen failing on 0.5.0: numbers were texts, and "not set" stood for null."""
    printed = json.loads(run("settings", "--json").output)

    assert (printed["lease_seconds"], printed["hub_url"], printed["log_level"]) == (45, None, "info")
    assert isinstance(printed["hosts"], list)


def test_a_cancelled_job_that_had_run_is_not_said_to_be_new(applied: Run, livewell_dsn: str) -> None:
    """Seen failing on 0.5.0: "it had not started", of a job that had been tried once."""
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO livewell.job (id, rank, run_at, created_at, state, attempt, max_attempts, queue, kind, "
            "payload) "
            "VALUES (77, 0, now() + interval '1 hour', now(), 'delayed', 1, 5, 'q', 'work', '{}')"
        )

    assert "it was not running" in applied("jobs", "cancel", "77").output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queue": "Bad Queue!"}, "task send: queue 'Bad Queue!': 1 to 63 of a-z"),
        ({"attempts": 0}, "task send: attempts 0: allowed are 1 to 100"),
        ({"priority": 101}, "task send: priority 101"),
    ],
)
def test_a_task_is_checked_where_it_is_declared(options: dict[str, object], told: str) -> None:
    """Seen failing on 0.5.0: all three were declared without a word."""
    app = Livewell()

    with pytest.raises(ConfigurationError, match=told.replace("(", r"\(")):

        @app.task(**options)  # type: ignore[arg-type]  # wrong on purpose
        async def send() -> None: ...


def test_an_interval_that_is_none_is_wrong_usage() -> None:
    """`every="5 minutes"`: the command line makes exit 2 of it (see above)."""
    app = Livewell()

    with pytest.raises(InvalidOption, match="5 minutes"):

        @app.schedule(every="5 minutes")
        async def nightly() -> None: ...
