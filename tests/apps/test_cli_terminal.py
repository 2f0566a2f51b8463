"""M6: no text of others reaches a terminal as something that it obeys, whichever command prints it."""

from __future__ import annotations

import ast
import json
import logging
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import click
import psycopg
import pytest
import structlog
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

import livewell.cli
from livewell.cli import cli
from livewell.telemetry import logs
from livewell.telemetry.control_characters import escaped, printable
from tests.apps.test_cli_pages import filled  # noqa: F401 - the fixture
from tests.apps.test_cli_types import run  # noqa: F401 - the fixture
from tests.support.source import parse

Run = Callable[..., Result]

OBEYED = [
    *(chr(code) for code in (*range(0x01, 0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))),
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
]
RAW = re.compile("PWN[" + "".join(map(re.escape, OBEYED)) + "]")

# Rows that FILL does not have: a value to read, a worker, a failed run, a job with a traceback.
MORE = """
INSERT INTO livewell_data.profile (key, price, company_name, default_image, is_etf, is_actively_trading, is_adr, is_fund)
SELECT 'AAPL', 1, 'Apple', false, false, true, false, false ON CONFLICT DO NOTHING;
UPDATE livewell.ledger SET fetched_at = now(), checked_at = now(), changed_at = now(), version = 1, status_version = 1 WHERE data_type = 'profile' AND key = 'AAPL';
UPDATE livewell.ledger SET reason = 'html', failures = 3, failing_since = now() WHERE key = 'IBM';
UPDATE livewell.run SET state = 'failed', error = 'failed' WHERE fence = 1;
SELECT livewell.create_resume('key:paged', 'c5b4ff6c-7a2b-4f0e-9a61-000000000009', NULL, 'CV', '{"basics": {"name": "PWN\u202eED PWN\u009bED"}}', 100, 1000000);
"""

# Everything that prints what is stored, with what it needs; the rest starts something, or changes
# it.
COMMANDS = [
    ["get", "profile", "AAPL"],
    ["get", "profile", "IBM"],
    ["why", "profile", "AAPL"],
    ["why", "profile", "IBM"],
    ["types", "list"],
    ["types", "show", "quote"],
    ["types", "check"],
    ["types", "ttl", "list"],
    ["types", "universe", "list", "quote"],
    ["plan"],
    ["state"],
    ["doctor"],
    ["upstreams", "list"],
    ["queues", "list"],
    ["queues", "workers"],
    ["queues", "limiters"],
    ["jobs", "list"],
    ["jobs", "show", "9001"],
    ["jobs", "why", "9001"],
    ["dead", "list"],
    ["dead", "show", "9101"],
    ["dead", "show", "9101", "--reveal"],
    ["schedules", "list"],
    ["runs", "list"],
    ["runs", "history", "nightly"],
    ["singletons", "list"],
    ["alerts", "list"],
    ["alerts", "show", "1"],
    ["alerts", "past"],
    ["alerts", "silences"],
    ["alerts", "channels"],
    ["warnings", "list"],
    ["audit", "list"],
    ["keys", "list", "--all"],
    ["settings"],
    ["migrate", "--check"],
    ["outbox", "stats"],
    ["outbox", "blocks"],
    ["outbox", "why", "1"],
    ["outbox", "events", "show", "1"],
    ["outbox", "events", "show", "1", "--reveal"],
    ["outbox", "sinks", "list"],
    ["outbox", "sinks", "show", "ab"],
    ["outbox", "topics", "list"],
    ["outbox", "dead", "list"],
    ["outbox", "dead", "list", "--groups"],
    ["outbox", "dead", "show", "1"],
    ["outbox", "replay", "list"],
    ["contacts", "list"],
    ["contacts", "conflicts"],
    ["contacts", "show", "external_id=a1"],
    ["contacts", "policy"],
    ["exports", "list"],
    ["exports", "show", "c5b4ff6c-7a2b-4f0e-9a61-000000000011"],
    ["exports", "fonts"],
    ["exports", "fonts", "PWN\u202eED"],
    ["resumes", "list", "--user", "key:paged"],
    ["resumes", "export", "c5b4ff6c-7a2b-4f0e-9a61-000000000009", "--user", "key:paged"],
]
STARTS_OR_CHANGES = {
    *(
        "demo",
        "up",
        "serve",
        "worker",
        "bench",
        "db",
        "docs",
        "health",
        "watch",
    ),  # watch: tests/integration/refresh/test_terminal.py
    *("types apply", "types sample", "types pause", "types resume", "types ttl set", "types ttl clear"),
    *("types universe add", "types universe import", "types universe deactivate"),
    *("upstreams resume", "upstreams probe", "upstreams close", "queues pause", "queues resume"),
    *("jobs cancel", "jobs retry", "dead edit", "dead redrive", "dead discard", "singletons take"),
    *("alerts silence", "alerts unsilence", "alerts test", "alerts enable", "screenshots"),
    *("schedules run", "schedules pause", "schedules resume", "schedules remove"),
    *("keys create", "keys revoke", "keys login"),
    *("outbox emit", "outbox pause", "outbox resume", "outbox sinks declare", "outbox sinks remove"),
    *("outbox topics declare", "outbox dead redrive", "outbox dead discard", "outbox replay begin"),
    *("outbox replay cancel", "outbox relay", "outbox drain"),
    *("contacts resolve", "contacts decide", "contacts unmerge", "contacts erase"),
    *("exports cancel", "exports cleanup", "resumes import"),
}


def hostile(chance: random.Random) -> str:
    """A few of them, each where it can be found again."""
    return "".join(f"PWN{one}ED" for one in chance.sample(OBEYED, 4))


def poison(dsn: str, seed: int) -> int:
    """Put hostile text into every text of every row that its checks allow.

    Answers how many columns took it.
    """
    chance = random.Random(seed)
    taken = 0
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(MORE)
        admin.execute("SET session_replication_role = replica")  # names are looked up elsewhere: only checks count here
        columns = admin.execute(
            "SELECT c.table_schema, c.table_name, c.column_name, c.data_type FROM information_schema.columns c "
            "JOIN information_schema.tables t USING (table_schema, table_name) WHERE t.table_type = 'BASE TABLE' "
            "AND c.table_schema IN ('livewell', 'livewell_data') "
            "AND c.table_name NOT IN ('migration', 'release', 'function_source', 'grant_source') "
            "AND NOT (c.table_name LIKE 'contact%' AND c.column_name = 'tenant') "  # by which they are found
            "AND NOT (c.table_name LIKE 'resume%' AND c.column_name = 'user_id') "
            "AND (c.data_type = 'text' AND c.column_name NOT IN ('key', 'data_type', 'upstream', 'cron', 'zone') "
            "     AND (c.table_name, c.column_name) NOT IN (('data_type', 'name'), ('upstream', 'name')) "
            "  OR c.column_name IN ('payload', 'arguments', 'progress')) ORDER BY 1, 2, 3"
        ).fetchall()
        for schema, table, column, kind in columns:
            value = (
                sql.SQL("left(coalesce({column}, ''), 8) || {text}")
                if kind == "text"
                else sql.SQL("jsonb_build_object('said', {text})")
            ).format(column=sql.Identifier(column), text=sql.Literal(hostile(chance)))
            statement = sql.SQL("UPDATE {table} SET {column} = {value}").format(
                table=sql.Identifier(schema, table), column=sql.Identifier(column), value=value
            )
            try:
                taken += bool(admin.execute(statement).rowcount)
            except psycopg.Error:
                continue  # a check, a key, or a type of its own
    return taken


@pytest.mark.parametrize("seed", [1])
def test_no_command_prints_what_a_terminal_would_obey(
    filled: Run,  # noqa: F811 - the fixture above
    livewell_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Every command that prints, as text, as JSON and in colours, beside rows full of it.

    Seen proving nothing: what says which release the schema is of was poisoned, too, and all commands refused it.
    """
    assert poison(livewell_dsn, seed) > 20
    met = 0
    for words in COMMANDS:
        for more, forced in (([], ""), (["--json"], ""), ([], "1")):
            monkeypatch.setenv("FORCE_COLOR", forced) if forced else monkeypatch.delenv("FORCE_COLOR", raising=False)
            said = filled(*words, *more)
            assert said.exit_code in (0, 1), (words, said.output)
            assert "unexpected" not in said.output, (words, said.output)
            assert "The schema is of" not in said.output, (words, said.output)
            assert said.exception is None or isinstance(said.exception, SystemExit), (words, said.exception)
            assert not RAW.search(said.output), f"{' '.join(words)} {more}: {said.output!r}"
            met += "PWN" in said.output
            if more:
                assert all(json.loads(line) is not None for line in said.stdout.splitlines())
    assert met > 20


def test_every_command_is_looked_at() -> None:
    """A command that is added is added here, too."""
    looked_at = {" ".join(word for word in words if word.isalpha()) for words in COMMANDS} | STARTS_OR_CHANGES

    missing = [name for name in leaves() if not any(one.startswith(name) or name.startswith(one) for one in looked_at)]

    assert missing == []


def leaves() -> Iterator[str]:
    """The names of all commands."""
    level: list[tuple[str, click.Command]] = [("", cli)]
    while level:
        name, found = level.pop()
        if isinstance(found, click.Group):
            ctx = click.Context(found)
            level += [(f"{name} {inner}".strip(), found.get_command(ctx, inner)) for inner in found.list_commands(ctx)]  # type: ignore[misc] # they are there
        else:
            yield name


def test_nothing_prints_past_the_one_place() -> None:
    """click.echo, print, a console of rich's own and the streams themselves are for cli/terminal.py alone."""
    past = []
    for path in sorted(Path(livewell.cli.__file__).parent.glob("*.py")):
        for node in ast.walk(parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            constant = isinstance(node, ast.Call) and all(isinstance(one, ast.Constant) for one in node.args)
            if called in ("click.echo", "click.secho", "print", "Console", "traceback.print_exc", "Console.print") or (
                called in ("sys.stdout.write", "sys.stderr.write") and not constant
            ):
                past.append(f"{path.name}:{node.lineno} {called}")  # type: ignore[attr-defined] # a Call has one

    assert [one.split(":")[0] for one in past] == ["terminal.py"]  # the one that prints


@given(st.text(st.one_of(st.sampled_from(OBEYED), st.characters(codec="utf-8"))))
def test_what_is_printed_has_nothing_to_obey(text: str) -> None:
    """And a JSON document still says the same."""
    shown = printable(text)

    assert not any(one in shown for one in OBEYED)
    assert json.loads(escaped(json.dumps(text, ensure_ascii=False))) == text
    assert not any(one in escaped(json.dumps(text, ensure_ascii=False)) for one in OBEYED)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_log_lines_have_nothing_to_obey(
    log_format: Literal["text", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours, those of libraries, and tracebacks."""
    handlers, level = logging.getLogger().handlers, logging.getLogger().level
    said = "".join(f"PWN{one}ED" for one in OBEYED)
    try:
        logs.configure(level="info", form=log_format)
        structlog.get_logger("livewell.test").warning(said, seen=said, listed=[said])
        logging.getLogger("a.library").error("failed: %s", said)
        try:
            raise ValueError(said)
        except ValueError:
            structlog.get_logger("livewell.test").exception("it failed")
    finally:
        structlog.reset_defaults()
        logging.getLogger().handlers = handlers
        logging.getLogger().setLevel(level)

    written = capsys.readouterr().err
    assert written.count("it failed") == 1
    assert written.count("PWN") >= 4 * len(OBEYED)
    assert not RAW.search(written)
