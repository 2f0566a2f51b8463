"""`livewell types` as people meet it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result

from livewell.apps.market import TYPES
from livewell.apps.market.simulator import Simulator
from livewell.apps.market.simulator.oracle.judge import calls
from livewell.cli import cli
from tests.support.registry_sql import RegistrySession

Run = Callable[..., Result]
QUOTE = (TYPES / "quote.toml").read_text()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, livewell_dsn: str) -> Iterator[Run]:
    """Run a command in this process on this test's database, in an empty folder."""
    for name in [name for name in os.environ if name.startswith("LIVEWELL_") and not name.startswith("LIVEWELL_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("FMP_API_KEY", raising=False)
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)
    monkeypatch.chdir(tmp_path)
    with RegistrySession(livewell_dsn) as session:
        session.clear()
    handlers, level = logging.getLogger().handlers, logging.getLogger().level
    yield lambda *arguments: CliRunner().invoke(cli, list(arguments), prog_name="livewell")
    structlog.reset_defaults()
    logging.getLogger().handlers = handlers
    logging.getLogger().setLevel(level)


@pytest.fixture
def applied(run: Run) -> Run:
    """The same, with quote and its upstream applied."""
    assert run("types", "apply", str(TYPES / "quote.toml"), str(TYPES / "fmp.toml")).exit_code == 0
    return run


def lines(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_type_and_an_upstream_are_paused_and_resumed(applied: Run, livewell_dsn: str) -> None:
    """Nothing more is demanded; a name that does not exist says so.

    Resuming lets go of a type that was parked.
    """
    assert applied("types", "pause", "quote").output == "quote is not refreshed any more.\n"
    assert lines(applied("types", "list", "--json"))[0]["paused"] is True
    with RegistrySession(livewell_dsn) as session:
        demand = "SELECT demand FROM livewell.read_through('quote', 'AAPL')"
        assert session.value(demand) == "paused"
        session.rows("UPDATE livewell.data_type SET parked_reason = 'not in the plan' WHERE name = 'quote'")
        assert applied("types", "resume", "quote").output == "quote is refreshed again.\n"
        assert applied("types", "pause", "fmp", "--upstream").exit_code == 0
        assert session.value(demand) == "paused"
        assert lines(applied("types", "resume", "fmp", "--upstream", "--json")) == [
            {"upstream": "fmp", "paused": False}
        ]
        assert session.value(demand) in ("queued", "due")
    wrong = applied("types", "pause", "nothing")
    assert wrong.exit_code == 1
    assert 'type "nothing" is not in the registry' in wrong.output


def test_the_shipped_types_are_applied_by_one_command(run: Run) -> None:
    """Upstream first; a second time nothing changes; and every table is as its definition says."""
    first = lines(run("types", "apply", "--app", "market", "--json"))
    again = lines(run("types", "apply", str(TYPES), "--json"))

    assert [done["outcome"] for done in first] == ["created"] * 9
    assert first[0]["name"] == "fmp"
    assert {done["outcome"] for done in again} == {"unchanged"}
    assert run("types", "check").stdout == "Every table is as its definition says.\n"
    assert len(lines(run("types", "list", "--json"))) == 8


def test_a_list_and_a_type_are_shown(applied: Run) -> None:
    """For people."""
    assert "quote" in applied("types", "list").stdout
    shown = applied("types", "show", "quote").stdout
    assert "price" in shown
    assert "more than 0, at most 10000000" in shown


def test_an_empty_registry_says_what_to_do(run: Run) -> None:
    """Not an empty table."""
    assert (
        run("types", "list").stdout
        == "There are no types yet. Apply the shipped ones with: livewell types apply --app market\n"
    )


def test_a_bad_file_is_one_line_and_changes_nothing(applied: Run, tmp_path: Path) -> None:
    """All files are read before the first is applied."""
    (tmp_path / "good.toml").write_text(QUOTE.replace('"1m"', '"2m"'))
    (tmp_path / "quote.toml").write_text(
        QUOTE.replace('"price": 231.4', '"price": "231.40"').replace('name = "quote"', 'name = "other"')
    )
    (tmp_path / "zero.toml").write_text(QUOTE.replace('ttl = "1m"', 'ttl = "0s"'))

    zero = applied("types", "apply", "good.toml", "zero.toml")
    text = applied("types", "apply", "quote.toml")

    assert (zero.exit_code, zero.stderr) == (
        2,
        "livewell: types apply: zero.toml: [type]: ttl '0s': more than 0 and at most 400 days is allowed\n",
    )
    assert text.exit_code == 2
    assert text.stderr.startswith(
        'livewell: types apply: quote.toml: column "price": the recorded sample has "price": "231.40" (text), '
        "but the column says numeric"
    )
    assert lines(applied("types", "list", "--json"))[0]["ttl_seconds"] == 60


def test_the_sessions_of_the_exchange_come_with_the_type(run: Run, tmp_path: Path, livewell_dsn: str) -> None:
    """Without them a Friday close would be stale a minute later (seen before they were loaded).

    A calendar that nobody has is refused.
    """
    (tmp_path / "moon.toml").write_text(QUOTE.replace('"XNYS"', '"MOON"'))
    with RegistrySession(livewell_dsn) as session:
        session.rows("DELETE FROM livewell.exchange_session")

        refused = run("types", "apply", str(TYPES / "fmp.toml"), "moon.toml")
        assert run("types", "apply", str(TYPES / "quote.toml")).exit_code == 0

        assert (refused.exit_code, refused.stderr) == (
            2,
            'livewell: types apply: moon.toml: [answer]: calendar "MOON": XNYS come with Livewell\n',
        )
        [(sessions,)] = session.rows("SELECT count(*) FROM livewell.exchange_session WHERE calendar = 'XNYS'")
        assert sessions > 1700


def test_a_change_that_is_no_addition_prints_the_sql(applied: Run, tmp_path: Path) -> None:
    """Exit 1, and the table is as it was."""
    (tmp_path / "quote.toml").write_text(
        QUOTE.replace('volume = { type = "numeric"', 'volume = { type = "bigint"').replace(
            "max = 10000000000000, nullable", "nullable"
        )
    )

    refused = applied("types", "apply", "quote.toml")

    assert refused.exit_code == 1
    assert "ALTER TABLE livewell_data.quote ALTER COLUMN volume TYPE pg_catalog.int8" in refused.stderr
    assert applied("types", "check").exit_code == 0


def test_a_table_changed_by_hand_is_found(applied: Run, livewell_dsn: str) -> None:
    """Exit 1, with the SQL that ends it."""
    with RegistrySession(livewell_dsn) as session:
        session.rows("ALTER TABLE livewell_data.quote ADD COLUMN mine integer")

    found = applied("types", "check")

    assert found.exit_code == 1
    assert "ALTER TABLE livewell_data.quote DROP COLUMN mine;" in found.stdout


def test_times_to_live_of_keys(applied: Run) -> None:
    """Set, listed, cleared."""
    assert applied("types", "ttl", "set", "quote", "AAPL", "5s").stdout == "quote AAPL now stays fresh for 5 s.\n"
    assert lines(applied("types", "ttl", "list", "--json")) == [
        {"data_type": "quote", "key": "AAPL", "ttl_seconds": 5.0, "type_ttl_seconds": 60.0}
    ]
    assert applied("types", "ttl", "clear", "quote", "AAPL").exit_code == 0
    assert applied("types", "ttl", "clear", "quote", "AAPL").exit_code == 1
    assert applied("types", "ttl", "list", "quote").stdout == "No key has a time to live of its own.\n"


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("ttl", "set", "quote", "AAPL", "0s"), "more than 0", 2),
        (("ttl", "set", "quote", "AAPL", "soon"), "ttl 'soon'", 2),
        (("ttl", "set", "quote", "no such", "5s"), "does not fit", 2),
        (("ttl", "set", "nothing", "AAPL", "5s"), 'type "nothing" is not in the registry', 1),
        (("show", "nothing"), 'type "nothing" is not in the registry', 1),
        (("universe", "add", "quote", "a b"), "does not fit", 2),
        (("sample", "quote", "AAPL"), "environment variable FMP_API_KEY is not set", 1),
    ],
)
def test_a_mistake_is_one_line(applied: Run, arguments: tuple[str, ...], said: str, code: int) -> None:
    """That says what is wrong; 2 where it is the usage, 1 where it is the world."""
    result = applied("types", *arguments)

    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_universe(applied: Run, tmp_path: Path) -> None:
    """Added, imported, deactivated, listed."""
    (tmp_path / "keys.txt").write_text("# large ones\nAAPL\n\nMSFT\n")

    assert applied("types", "universe", "import", "quote", "keys.txt").stdout == "2 keys of quote added.\n"
    assert lines(applied("types", "universe", "add", "quote", "NVDA", "AAPL", "--json")) == [
        {"type": "quote", "added": 1}
    ]
    assert applied("types", "universe", "deactivate", "quote", "MSFT").stdout == "1 key of quote deactivated.\n"
    assert [row["key"] for row in lines(applied("types", "universe", "list", "quote", "--json"))] == ["AAPL", "NVDA"]
    assert len(lines(applied("types", "universe", "list", "quote", "--inactive", "--json"))) == 3


@pytest.fixture
def simulated(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Quote from a simulator, which allows two calls an hour."""
    with asyncio.Runner() as runner:
        simulator = runner.run(Simulator.start(tmp_path / "simulator.log", seed=7))
        monkeypatch.setenv("LIVEWELL_OUTBOUND_HOSTS", "127.0.0.1")
        monkeypatch.setenv("LIVEWELL_OUTBOUND_PRIVATE_HOSTS", "127.0.0.1")
        monkeypatch.setenv("FMP_API_KEY", "canary-of-the-sample")
        upstream = (TYPES / "fmp.toml").read_text()
        address = upstream.partition('base_url = "')[2].partition('"')[0]
        upstream = upstream.replace(address, simulator.url).replace('rate = "300/min"', 'rate = "2/h"')
        (tmp_path / "fmp.toml").write_text(upstream)
        assert run("types", "apply", "fmp.toml", str(TYPES / "quote.toml")).exit_code == 0
        yield run
        runner.run(simulator.stop())


def test_a_sample_is_recorded_under_the_upstreams_limits(simulated: Run, livewell_dsn: str, tmp_path: Path) -> None:
    """A real call: as a table for the file, its bytes are booked, and the third is refused before anybody is called."""
    result = simulated("types", "sample", "quote", "AAPL")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith('[sample]\nkey = "AAPL"\nrecorded = "20')
    assert "canary" not in result.output

    assert simulated("types", "sample", "quote", "NOSUCH").exit_code == 1
    refused = simulated("types", "sample", "quote", "MSFT")

    assert refused.exit_code == 1
    assert "no call may be made now" in refused.stderr
    assert len(calls(tmp_path / "simulator.log")) == 2
    with RegistrySession(livewell_dsn) as session:
        assert session.value("SELECT units > 300 AND calls = 2 FROM livewell.limiter_usage")
