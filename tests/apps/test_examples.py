"""Every example runs as its docstring says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from livewell.testing.sinks import checks

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if not path.name.startswith(("test_", "__")))
RAN: dict[str, subprocess.CompletedProcess[str]] = {}  # each once in this process, however many tests look at it


def run(script: str, dsn: str) -> subprocess.CompletedProcess[str]:
    if script not in RAN:
        RAN[script] = subprocess.run(
            [sys.executable, f"examples/{script}.py"],
            env={**os.environ, "DATABASE_URL": dsn},
            cwd=EXAMPLES.parent,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    return RAN[script]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_script_runs(script: Path, livewell_dsn: str) -> None:
    """It ends with exit code 0 and says what it did."""
    done = run(script.stem, livewell_dsn)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_retried_welcome_is_sent(livewell_dsn: str) -> None:
    """The first attempt asks to be retried, the second one greets."""
    assert "Welcome, Ada (user 7, attempt 2)" in run("a_task", livewell_dsn).stdout


def test_a_rolled_back_order_leaves_no_job(livewell_dsn: str) -> None:
    """Only the committed order exists, shipped once."""
    assert "[(1, 1)]" in run("transactional_enqueue", livewell_dsn).stdout


def test_the_refused_sign_up_leaves_no_job(livewell_dsn: str) -> None:
    """Three of four requests commit, and one job is delayed."""
    assert "jobs: ['delayed', 'ready', 'ready', 'ready']" in run("blocking_code", livewell_dsn).stdout


def test_the_limited_client_is_charged_for_what_the_upstream_saw(livewell_dsn: str) -> None:
    """Ten symbols and one refusal are charged as eleven calls, and both credentials work.

    The books agree with the upstream's own log to the byte.
    """
    said = run("limited_api_client", livewell_dsn).stdout
    assert "S0: 429 with" in said
    assert "with main" in said
    assert "with spare" in said
    charged, counted = (re.findall(r"(\d+) calls, (\d+) bytes", line)[0] for line in said.splitlines()[-2:])
    assert charged == counted
    assert charged[0] == "11"


def test_the_follow_up_comes_after_the_last_picture(livewell_dsn: str) -> None:
    """Also after the broken one, which is counted as failed."""
    said = run("batch_with_follow_up", livewell_dsn).stdout.splitlines()
    told = [line for line in said if line.startswith(("shrunk ", "album ")) or "succeeded, " in line]
    assert any("broken.png is no picture" in line for line in said)  # the worker logs the failure with its traceback
    assert told == [
        "shrunk a.png",
        "shrunk b.png",
        "shrunk c.png",
        "album 7: all pictures are done",
        "3 succeeded, 1 failed; the batch has ended",
    ]


def test_each_user_has_three_places(livewell_dsn: str) -> None:
    """Seven of Ann's ten are held from the start, and Bob does not wait for them."""
    said = run("per_user_limits", livewell_dsn).stdout
    assert "5 ready, 7 held" in said
    assert "at most 3 of Ann's and 2 of Bob's ran at once" in said


def test_a_repeated_webhook_has_its_effect_once(livewell_dsn: str) -> None:
    """Three attempts of one event take three from the stock, not nine; a forged one takes nothing."""
    said = run("webhook_receiver", livewell_dsn).stdout.splitlines()
    assert said[:3] == [f"attempt {number}: delivered, 7 left" for number in (1, 2, 3)]
    assert said[3].startswith("with another secret: failed (the endpoint answered 401")
    assert said[3].endswith(", 7 left")


def test_a_sink_of_your_own_passes_the_checks(livewell_dsn: str) -> None:
    """Every check that needs no network."""
    assert run("custom_sink", livewell_dsn).stdout.count("passed: ") == len(checks())


def test_of_two_libraries_only_what_committed_has_events(livewell_dsn: str) -> None:
    """Two parcels are too heavy, one each way."""
    said = run("emit_in_sqlalchemy", livewell_dsn).stdout
    assert said.count("is too heavy") == 2
    assert "parcels [1, 3], events ['1', '3']" in said


def test_of_two_imports_the_good_one_arrives_in_order(livewell_dsn: str) -> None:
    """All of it, and nothing of the first."""
    said = run("emit_many", livewell_dsn).stdout
    assert "5,000 events arrived, 150 keys, each in order: True" in said


def test_every_order_is_paid_once_though_both_sides_are_killed(livewell_dsn: str) -> None:
    """Relays and consumers die by kill -9, and events come again."""
    said = run("inbox_consumer", livewell_dsn).stdout
    assert "2 relays and 2 consumers were killed" in said
    assert " 0 repeats" not in said
    assert "40 orders, 40 payments, for 40 events" in said


def test_the_example_of_testing_passes(livewell_server: str) -> None:
    """A user's test with the shipped fixtures passes in a pytest run of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/test_your_tasks.py"],
        env={**os.environ, "LIVEWELL_TEST_DSN": livewell_server},
        cwd=EXAMPLES.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
