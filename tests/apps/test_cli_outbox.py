"""`livewell outbox` as people meet it: looking, mending, replaying, draining (O5, O7)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from livewell.cli import cli
from livewell.testing.processes import eventually

Run = Callable[..., Result]

APP = """
from livewell import Livewell

app = Livewell()
app.outbox.topic("orders.created")
app.outbox.topic("orders.paid", on_dead="park")
app.outbox.sink("shop", "file", path="{path}")
"""


@pytest.fixture
def run(livewell_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in this process, on this test's database."""
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)
    return lambda *arguments: CliRunner().invoke(cli, list(arguments), prog_name="livewell")


@pytest.fixture
def rows(livewell_dsn: str) -> Callable[..., list[Any]]:
    """One statement on this test's database."""

    def ask(query: str, *params: Any) -> list[Any]:
        with psycopg.connect(livewell_dsn, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), params or None)
            return cursor.fetchall() if cursor.description else []

    return ask


@pytest.fixture
def outside(run: Run) -> Run:
    """Two topics, and a sink that programs elsewhere claim from."""
    assert run("outbox", "topics", "declare", "orders.created").exit_code == 0
    assert run("outbox", "topics", "declare", "orders.paid", "--on-dead", "park").exit_code == 0
    assert run("outbox", "sinks", "declare", "erp", "--outside", "--topics", "orders.*").exit_code == 0
    return run


def documents(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def emit(run: Run, topic: str = "orders.created", key: str = "42") -> str:
    [made] = documents(run("outbox", "emit", topic, "--payload", '{"total":  1.50}', "--key", key, "--json"))
    return str(made["id"])


def refuse(rows: Callable[..., list[Any]]) -> None:
    """The program elsewhere claims all, and the first letter of each key is dead."""
    [(numbers,)] = rows("SELECT array_agg(number) FROM livewell.event_delivery")
    [(sink,)] = rows("SELECT id FROM livewell.event_sink")
    rows("SELECT livewell.bury_events(%s::smallint, %s::bigint[], '{refused}', '{no}')", sink, numbers[:1])


def test_nothing_is_said_in_words(run: Run) -> None:
    assert "No sink is declared" in run("outbox", "stats").stdout
    assert run("outbox", "dead", "list").stdout == "There are no dead letters.\n"
    assert run("outbox", "blocks").stdout == "No key waits.\n"
    assert run("outbox", "replay", "list").stdout == "There are no replays.\n"


def test_an_event_is_emitted_shown_and_explained(outside: Run) -> None:
    """It leaves letter by letter; secrets in it are hidden unless asked for."""
    made = emit(outside)

    assert '{"total":  1.50}' in outside("outbox", "events", "show", made, "--reveal").stdout
    [shown] = documents(outside("outbox", "events", "show", made, "--json"))
    assert (shown["id"], shown["sinks"][0]["state"]) == (made, "waiting")
    why = outside("outbox", "why", made)
    assert (why.exit_code, "Nobody outside claims" in why.stdout) == (1, True)
    assert outside("outbox", "why", "1").exit_code == 1
    assert outside("outbox", "emit", "orders.created", "--payload", "{").exit_code == 2
    assert outside("outbox", "emit", "nothing", "--payload", "{}").exit_code == 2


def test_a_sink_is_listed_shown_paused_resumed_and_removed(outside: Run) -> None:
    emit(outside)
    assert "nobody claims" in outside("outbox", "sinks", "list").stdout
    shown = outside("outbox", "sinks", "show", "erp").stdout
    assert all(part in shown for part in ("orders.*", "(no tenant)", "nobody"))

    assert [outside("outbox", "pause", "erp").stdout.split(";")[0] for _ in range(2)] == [
        "Sink erp is paused",
        "Sink erp was paused already",
    ]
    assert "paused" in outside("outbox", "stats").stdout
    assert outside("outbox", "resume", "erp").stdout == "Sink erp goes on.\n"
    refused = outside("outbox", "sinks", "remove", "erp")
    assert (refused.exit_code, "--force" in refused.stderr) == (2, True)
    assert outside("outbox", "sinks", "remove", "erp", "--force").exit_code == 0
    assert outside("outbox", "pause", "erp").exit_code == 1


def test_dead_letters_are_listed_shown_redriven_and_discarded(outside: Run, rows: Callable[..., list[Any]]) -> None:
    first = emit(outside, "orders.paid")
    emit(outside, "orders.paid")
    refuse(rows)

    assert outside("outbox", "stats").exit_code == 1
    [letter] = documents(outside("outbox", "dead", "list", "--json"))
    assert (letter["id"], letter["reason"], letter["parks"]) == (first, "refused", True)
    [group] = documents(outside("outbox", "dead", "list", "--groups", "--json"))
    assert (group["topic"], group["n"]) == ("orders.paid", 1)
    assert "refused" in outside("outbox", "dead", "show", first).stdout
    [block] = documents(outside("outbox", "blocks", "--state", "parked", "--json"))
    assert block["event_id"] == first

    assert outside("outbox", "dead", "redrive").exit_code == 2
    assert documents(outside("outbox", "dead", "redrive", first, "--sink", "erp", "--json")) == [{"redriven": 1}]
    assert outside("outbox", "dead", "redrive", first).exit_code == 1
    assert outside("outbox", "dead", "show", first).exit_code == 1
    refuse(rows)
    assert outside("outbox", "dead", "discard", "--all").exit_code == 2
    assert documents(outside("outbox", "dead", "discard", "--all", "--yes", "--json")) == [{"discarded": 1}]


def test_a_replay_is_begun_listed_and_cancelled(outside: Run) -> None:
    emit(outside)
    [begun] = documents(
        outside("outbox", "replay", "begin", "erp", "--from", "2h", "--topic", "orders.created", "--json")
    )
    [listed] = documents(outside("outbox", "replay", "list", "--json"))
    assert (listed["id"], listed["state"]) == (begun["id"], "running")
    assert outside("outbox", "replay", "cancel", str(begun["id"])).stdout.endswith("is cancelled.\n")
    assert outside("outbox", "replay", "cancel", str(begun["id"])).stdout.endswith("had ended already.\n")
    assert outside("outbox", "replay", "cancel", "999").exit_code == 1
    assert outside("outbox", "replay", "begin", "erp", "--from", "yesterday").exit_code == 2


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "livewell.cli", "outbox", *arguments]


@pytest.fixture
def shop(tmp_path: Path, livewell_dsn: str) -> dict[str, Any]:
    """An app with one sink, a file; and how to run a process in its folder."""
    (tmp_path / "shop.py").write_text(APP.format(path=tmp_path / "events"))
    return {"cwd": tmp_path, "env": {**os.environ, "DATABASE_URL": livewell_dsn}, "text": True}


def test_a_cron_drains_what_is_ready_and_ends(shop: dict[str, Any], run: Run, rows: Callable[..., list[Any]]) -> None:
    """Exit 0; the leases are given back."""
    subprocess.run(command("drain", "shop:app", "--once"), check=True, **shop)
    for _ in range(3):
        emit(run)
    done = subprocess.run(command("drain", "shop:app", "--once", "--json"), check=True, capture_output=True, **shop)

    assert json.loads(done.stdout) == {"drained": True, "left": []}
    assert len((shop["cwd"] / "events").read_text().splitlines()) == 3
    assert rows("SELECT count(*) FROM livewell.event_delivery") == [(0,)]
    assert rows("SELECT count(*) FROM livewell.relay") == [(0,)]


def test_a_drain_ends_when_its_time_is_over(shop: dict[str, Any], run: Run, rows: Callable[..., list[Any]]) -> None:
    """With a sink that takes nothing: exit 0, and what is left is named."""
    subprocess.run(command("drain", "shop:app", "--once"), check=True, **shop)
    emit(run)
    (shop["cwd"] / "events").unlink(missing_ok=True)
    (shop["cwd"] / "events").mkdir()
    done = subprocess.run(
        command("drain", "shop:app", "--once", "--seconds", "1", "--json"), check=True, capture_output=True, **shop
    )

    assert json.loads(done.stdout) == {"drained": False, "left": ["shop"]}
    assert rows("SELECT count(*) FROM livewell.event_delivery") == [(1,)]


def test_a_relay_delivers_until_it_is_told_to_stop(
    shop: dict[str, Any], run: Run, rows: Callable[..., list[Any]]
) -> None:
    """SIGTERM: exit 0, and its lease and shards are free at once."""
    process = subprocess.Popen(command("relay", "shop:app", "--name", "mine"), **shop)
    try:
        eventually(lambda: rows("SELECT name FROM livewell.relay") == [("mine",)])
        emit(run)
        eventually(lambda: rows("SELECT count(*) FROM livewell.event_sent") == [(1,)])
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
    assert rows("SELECT count(*) FROM livewell.relay") == [(0,)]
    assert rows("SELECT count(*) FROM livewell.relay_shard WHERE relay IS NOT NULL") == [(0,)]


def test_a_relay_of_an_app_without_sinks_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("outbox", "relay")
    assert (refused.exit_code, "declare no sink" in refused.stderr) == (2, True)
