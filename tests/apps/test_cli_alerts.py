"""`livewell alerts` and `livewell warnings` as people meet them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from livewell.cli import cli

FIRED = [
    (
        "SELECT livewell.observe_alerts('queue_deep', 'P1', '10 minutes', ARRAY['mail'], ARRAY['queue mail: more "
        "than 1,000 jobs wait'])"
    ),
    """SELECT livewell.declare_channels('[{"name": "ops", "kind": "discord", "source": "env:OPS", "level": "P2", "repeats": false}]', 100)""",
    (
        "SELECT livewell.settle_attempt(a.attempt_id, 'refused', 410, 'the receiver is gone', false, NULL, true) "
        "FROM livewell.begin_attempt('ops', 30) a"
    ),
]

Run = Callable[..., Result]


@pytest.fixture
def run(livewell_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in this process, on this test's database."""
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)
    return lambda *arguments: CliRunner().invoke(cli, list(arguments), prog_name="livewell")


@pytest.fixture
def fired(run: Run, livewell_dsn: str) -> Run:
    """One alert whose only receiver is gone."""
    with psycopg.connect(livewell_dsn, autocommit=True) as connection:
        for statement in FIRED:
            connection.execute(statement.encode())
    return run


def documents(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_nothing_wrong_is_said_in_words(run: Run) -> None:
    """Not an empty table."""
    assert run("alerts", "list").stdout == "Nothing is wrong: no alert is fired.\n"
    assert run("warnings", "list").stdout == "Nothing was tolerated within 24 h.\n"
    assert "alert_channels" in run("alerts", "channels").stdout


def test_what_is_wrong_is_one_line_each(fired: Run) -> None:
    """With who was told; and the same as JSON."""
    shown = fired("alerts", "list")
    assert shown.exit_code == 0
    assert "queue mail: more than 1,000 jobs wait" in shown.stdout
    assert "1 refused" in shown.stdout
    [alert] = documents(fired("alerts", "list", "--json"))
    assert (alert["rule"], alert["level"], alert["refused"]) == ("queue_deep", "P1", 1)


def test_one_alert_says_what_to_do_and_what_was_tried(fired: Run) -> None:
    """An unknown number is exit code 1 and says how to find one."""
    [alert] = documents(fired("alerts", "list", "--json"))
    shown = fired("alerts", "show", str(alert["id"])).stdout
    assert "livewell docs operations/alerts/queue_deep" in shown
    assert "refused 410 the receiver is gone" in shown
    [told] = documents(fired("alerts", "show", str(alert["id"]), "--json"))[0]["firings_shown"][0]["told"]
    assert told["channel"] == "ops"
    missing = fired("alerts", "show", "999999")
    assert missing.exit_code == 1
    assert "list them with: livewell alerts list" in missing.stderr
    assert fired("alerts", "show", "x").exit_code == 2


def test_a_disabled_channel_is_shown_and_enabled(fired: Run) -> None:
    """The table gives the command."""
    assert "livewell alerts enable ops" in fired("alerts", "channels").stdout
    assert fired("alerts", "enable", "ops").stdout == "Channel ops is enabled.\n"
    assert documents(fired("alerts", "channels", "--json"))[0]["disabled_at"] is None
    assert fired("alerts", "enable", "nobody").exit_code == 1


def test_a_rule_is_silenced_until_an_end_and_the_list_says_so(fired: Run) -> None:
    """Seven days at most; an unknown rule names those there are."""
    said = fired("alerts", "silence", "queue_deep", "--for", "2h")
    assert said.stdout.startswith("Nobody is told of queue_deep until 2")
    assert "(in 2 h)" in said.stdout
    assert "silenced, ends in 2 h" in fired("alerts", "list").stdout
    assert "queue_deep" in fired("alerts", "silences").stdout
    assert fired("alerts", "unsilence", "queue_deep").stdout == "People are told of queue_deep again.\n"
    assert fired("alerts", "silences").stdout == "Nothing is silenced.\n"
    assert fired("alerts", "unsilence", "queue_deep").exit_code == 1
    [told] = documents(fired("alerts", "silence", "queue_deep", "--for", "1d", "--subject", "mail", "--json"))
    assert (told["rule"], told["subject"]) == ("queue_deep", "mail")
    for rule, length in (("queue_deep", "8d"), ("queue_deep", "soon"), ("nothing", "1h")):
        assert fired("alerts", "silence", rule, "--for", length).exit_code != 0
    assert "there are: queue_deep" in fired("alerts", "silence", "nothing", "--for", "1h").stderr


def test_a_channel_is_tested(fired: Run) -> None:
    """One that is disabled is not; without a worker it waits."""
    assert "is disabled" in fired("alerts", "test", "ops").stderr
    fired("alerts", "enable", "ops")
    assert "no worker was here" in fired("alerts", "test", "ops").stdout
    assert documents(fired("alerts", "test", "ops", "--json")) == [{"channel": "ops", "answer": "waiting"}]
    assert "waiting" in fired("alerts", "channels").stdout
    assert fired("alerts", "test", "nobody").exit_code == 1


def test_what_is_over_is_listed(fired: Run, livewell_dsn: str) -> None:
    """With who was told."""
    assert fired("alerts", "past").stdout == "Nothing that was wrong is over.\n"
    with psycopg.connect(livewell_dsn, autocommit=True) as connection:
        connection.execute("UPDATE livewell.alert_firing SET ended_at = now()")
    assert "1 refused" in fired("alerts", "past").stdout
    assert len(documents(fired("alerts", "past", "--json"))) == 1


def test_warnings_are_listed_with_their_rates(fired: Run) -> None:
    """What was tolerated above is one of them."""
    assert "a receiver is gone and its channel was disabled" in fired("warnings", "list").stdout
    found = {one["what"]: one["n"] for one in documents(fired("warnings", "list", "--json"))}
    assert found["a notification was refused"] == 1
    assert documents(fired("warnings", "list", "--json", "--type", "quote")) == []
