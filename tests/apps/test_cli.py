"""The command line as people meet it.

What it prints, what it exits with, and what it says when something is wrong.

Looking and mending run in this process; workers are real ones.
"""

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import click
import pytest
import structlog
from click.testing import CliRunner, Result

from livewell import Livewell, Settings
from livewell.capability import built_in
from livewell.cli import cli
from livewell.cli.commands import dead
from livewell.cli.commands.db import without_password
from livewell.testing import InlineWorker
from livewell.testing.processes import ChildProcess, eventually, free_port
from livewell.words import span

COMMANDS = [entry for one in built_in() for entry in one.commands]

SHOP = """
import asyncio
from livewell import Livewell

app = Livewell()
thing = 3

@app.task(queue="mail")
async def welcome(number: int) -> None:
    print("welcomed", number, flush=True)

@app.task(queue="slow")
async def endless() -> None:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("not yet", flush=True)
"""

NOBODY = "postgresql://user:s3cret@127.0.0.1:1/db"

Run = Callable[..., Result]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command in this process, in an empty folder, where the database is not needed."""
    for name in [name for name in os.environ if name.startswith("LIVEWELL_") and not name.startswith("LIVEWELL_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DATABASE_URL", NOBODY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("shop", None)
    handlers, level = logging.getLogger().handlers, logging.getLogger().level
    yield lambda *arguments, **options: CliRunner().invoke(cli, list(arguments), prog_name="livewell", **options)
    structlog.reset_defaults()
    logging.getLogger().handlers = handlers
    logging.getLogger().setLevel(level)


@pytest.fixture
def run(bare: Run, livewell_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same, on this test's database."""
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)
    return bare


@pytest.fixture
def jobs(livewell_settings: Settings) -> list[int]:
    """Three delayed jobs in queue mail; two dead letters in queue broken."""
    app = Livewell(livewell_settings)

    @app.task(queue="mail")
    async def welcome(number: int, password: str) -> None: ...

    @app.task(queue="broken", attempts=1)
    async def broken(number: int) -> None:
        raise ValueError(f"no {number} at postgresql://user:sekret@host/db")

    async def fill() -> list[int]:
        async with app:
            waiting = welcome.options(delay="1h")
            ids = [(await waiting.enqueue(number=n, password="hunter2")).id for n in range(3)]  # noqa: S106 - to be hidden
            ids += [(await broken.enqueue(number=n)).id for n in range(2)]
            await InlineWorker(app).run()
            return ids

    return asyncio.run(fill())


@pytest.fixture
def worker(livewell_dsn: str, tmp_path: Path) -> Iterator[Callable[..., ChildProcess]]:
    """Start a real `livewell` in a folder with shop.py; none outlives the test."""
    (tmp_path / "shop.py").write_text(SHOP)
    started: list[ChildProcess] = []
    env = {
        "DATABASE_URL": livewell_dsn,
        "LIVEWELL_LEASE_SECONDS": "2",
        "LIVEWELL_HEARTBEAT_SECONDS": "0.2",
        "LIVEWELL_POLL_SECONDS": "0.1",
    }

    def start(*arguments: str, **more: str) -> ChildProcess:
        child = ChildProcess(["-m", "livewell.cli", *arguments], env=env | more, cwd=tmp_path)
        started.append(child)
        return child.start()

    yield start
    for child in started:
        child.close()


def lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def enqueue(settings: Settings, name: str, **arguments: Any) -> int:
    """Enqueue a job of shop.py, whose module this process does not import."""
    app = Livewell(settings)

    @app.task(queue="mail")
    async def welcome(number: int) -> None: ...

    @app.task(queue="slow")
    async def endless() -> None: ...

    async def put() -> int:
        async with app:
            return (await app.enqueue(name, **arguments)).id

    return asyncio.run(put())


# ── help and wrong usage ──


def test_help_names_every_command_under_its_heading(bare: Run) -> None:
    """One screen says what there is."""
    shown = bare("--help")
    assert shown.exit_code == 0
    for entry in COMMANDS:
        assert f"{entry.heading}:" in shown.stdout
        assert f"\n  {entry.name} " in shown.stdout


def test_the_version_is_told(bare: Run) -> None:
    """It is the package's."""
    from livewell.version import VERSION  # noqa: PLC0415 - what is told is compared with it

    assert bare("--version").stdout == f"livewell {VERSION}\n"


def test_every_command_that_prints_knows_json(bare: Run) -> None:
    """All but the worker and the relay, which only log, psql, which is not ours, and the groups themselves."""
    pages: list[tuple[str, ...]] = []
    groups: list[tuple[tuple[str, ...], click.Command | None]] = [
        ((e.name,), cli.get_command(click.Context(cli), e.name)) for e in COMMANDS if e.name not in {"worker", "bench"}
    ]
    for path, command in groups:
        if isinstance(command, click.Group):
            groups += [((*path, name), sub) for name, sub in command.commands.items() if name != "psql"]
        elif path != ("outbox", "relay"):
            pages.append(path)
    for page in pages:
        assert "--json" in bare(*page, "--help").stdout, page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wroker"], "livewell: there is no command 'wroker'. Did you mean 'worker'?"),
        (["jobs", "lst"], "livewell: jobs: there is no command 'lst'. Did you mean 'list'?"),
        (
            ["jobs", "list", "--limit", "1001"],
            "livewell: jobs list: Invalid value for '--limit': 1001 is not in the range",
        ),
        (["jobs", "show", "x"], "livewell: jobs show: Invalid value for 'ID': 'x' is not a job's id"),
        (["jobs", "show", "9223372036854775808"], "is not a job's id"),
        (["jobs", "list", "--state", "dead"], "'dead' is not one of 'delayed', 'held', 'ready', 'running'"),
        (["dead", "redrive"], "livewell: dead redrive: say which: ids, or --queue and/or --task, or --all"),
        (["dead", "redrive", "1", "--all"], "say which"),
        (["dead", "edit", "1", "--payload", "{"], "livewell: dead edit: Invalid value for --payload: not JSON"),
        (["dead", "edit", "1", "--payload", "NaN"], "not JSON: NaN"),
        (["dead", "edit", "1", "--payload", "[1]"], "a JSON object with the task's arguments is needed, not a list"),
        (["dead", "edit", "1", "--payload", "@nowhere"], "@nowhere cannot be read"),
        (["migrate", "--check", "--print"], "--check and --print: choose one"),
        (["demo", "--jobs", "1"], "1 is not in the range"),
        (["worker", "a:b", "--slots", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage_is_one_line_and_ends_with_2(bare: Run, arguments: list[str], said: str) -> None:
    """With the place to read more, and no traceback."""
    result = bare(*arguments)
    assert said in result.stderr
    assert "Try: livewell" in result.stderr
    assert "Traceback" not in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shop", "APP 'shop': write module:attribute, for example shop:app"),
        ("shop.py:app", "APP 'shop.py:app': write module:attribute, for example shop:app"),
        ("./jobs/shop.py", "for example jobs.shop:app"),
        ("nowhere:app", "there is no module 'nowhere', neither in"),
        ("nowhere:app", "here are: crashes, needs, shop"),
        ("shop:ap", "has no 'ap'; the apps there: shop:app"),
        ("shop:thing", "APP shop:thing: is of type int, not a Livewell; the apps there: shop:app"),
        ("crashes:app", "importing crashes failed: ZeroDivisionError: division by zero (/"),
        ("needs:app", "importing needs failed: No module named 'nonexistent_package'"),
    ],
)
def test_a_wrong_app_is_named_with_what_is_there(bare: Run, tmp_path: Path, target: str | None, said: str) -> None:
    """What was tried, what was found instead, exit code 2."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "crashes.py").write_text("app = 1 / 0\n")
    (tmp_path / "needs.py").write_text("import nonexistent_package\n")
    result = bare("worker", *([target] if target else []))
    assert said in result.stderr
    assert result.stderr.startswith("livewell: worker: ")
    assert result.exit_code == 2


def test_a_misspelt_queue_is_refused(bare: Run, tmp_path: Path) -> None:
    """It would make a worker that idles for ever."""
    (tmp_path / "shop.py").write_text(SHOP)
    result = bare("worker", "shop:app", "--queue", "mial")
    assert result.stderr == "livewell: worker: --queue mial: no task of shop:app uses it; its queues are: mail, slow\n"
    assert result.exit_code == 2


def test_a_wrong_setting_ends_with_2(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable, the value and what is allowed."""
    monkeypatch.setenv("LIVEWELL_WORKER_SLOTS", "many")
    result = bare("queues", "list")
    assert "livewell: queues list: LIVEWELL_WORKER_SLOTS is 'many'" in result.stderr
    assert result.exit_code == 2


def test_an_unreachable_database_is_one_line_without_the_password(bare: Run) -> None:
    """Exit 1: the usage was right."""
    result = bare("jobs", "list")
    assert result.stderr.startswith("livewell: jobs list: the database did not answer")
    assert "livewell settings" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "s3cret" not in result.output
    assert result.exit_code == 1


def test_a_traceback_is_shown_only_when_debugging(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """And even then the secret in it is not."""
    monkeypatch.setenv("LIVEWELL_LOG_LEVEL", "debug")
    result = bare("jobs", "list")
    assert "Traceback" in result.stderr
    assert "s3cret" not in result.output


# ── looking and mending ──


def test_the_audit_tells_who_paused_a_queue(run: Run, jobs: list[int]) -> None:
    """By command: who, from where, before and after; filters leave out the others."""
    assert jobs
    queue = lines(run("queues", "list", "--json"))[0]["name"]
    run("queues", "pause", queue)
    run("queues", "pause", queue)

    [again, first] = lines(run("audit", "list", "--action", "queues.pause", "--subject", queue, "--json"))

    assert (first["before"], first["after"]) == ({"paused": False}, {"paused": True})
    assert (again["before"], again["after"]) == ({"paused": True}, {"paused": True})
    assert first["actor"].startswith("cli:")
    assert first["origin"].startswith("cli")
    assert len(lines(run("audit", "list", "--actor", first["actor"], "--since", "1h", "--json"))) == 2
    assert run("audit", "list", "--until", "1h").stdout == "Nothing that was done matches.\n"
    assert "paused" in run("audit", "list").stdout
    assert run("audit", "list", "--since", "yesterday").exit_code == 2


def test_empty_lists_say_so_in_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is not an empty table. One queue is always there: that of exports."""
    assert run("jobs", "list").stdout == "There are no live jobs.\n"
    assert (
        run("jobs", "list", "--queue", "mail", "--state", "ready").stdout == "There are no ready jobs in queue mail.\n"
    )
    assert run("dead", "list", "--task", "x").stdout == "There are no dead letters of task x.\n"
    assert run("dead", "list", "--task", "x").stdout == "There are no dead letters of task x.\n"
    assert run("queues", "workers").stdout.startswith("No worker is running.")
    assert run("jobs", "list", "--json").stdout == ""
    assert run("exports", "list").stdout == "There are no exports.\n"
    assert run("exports", "list", "--state", "failed").stdout == "There is no such export.\n"
    assert run("exports", "list", "--json").stdout == ""
    assert run("resumes", "list").stdout == "There are no documents: livewell resumes import FILE\n"
    assert run("resumes", "list", "--json").stdout == ""
    assert [row["name"] for row in lines(run("queues", "list", "--json"))] == ["exports"]

    async def none(_: object) -> list[object]:
        return []

    monkeypatch.setattr("livewell.queue.admin.QueueAdmin.queues", none)
    assert run("queues", "list").stdout.startswith("There are no queues yet")


def test_jobs_are_listed_in_pages(run: Run, jobs: list[int]) -> None:
    """A full page says how to get the next; JSON has one job per line with ISO times."""
    first = run("jobs", "list", "--limit", "2")
    assert f"--after {jobs[1]}" in first.stdout
    assert "in 1 h" in first.stdout
    rest = lines(run("jobs", "list", "--limit", "2", "--after", str(jobs[1]), "--json"))
    assert [row["id"] for row in rest] == [jobs[2]]
    assert rest[0]["created_at"].endswith("+00:00")


def test_jobs_are_found_by_every_part_of_the_filter(run: Run, jobs: list[int]) -> None:
    """The newest first if asked for; those that ended by their state; what cannot be meant is said."""
    newest = lines(run("jobs", "list", "--queue", "mail", "--task", "welcome", "--since", "1h", "--newest", "--json"))
    assert [row["id"] for row in newest] == jobs[2::-1]
    assert [row["id"] for row in lines(run("jobs", "list", "--state", "failed", "--json"))] == jobs[3:]
    assert run("jobs", "list", "--key", "none").stdout == "There are no live jobs that match.\n"
    assert "'soon': write an age such as 90s" in run("jobs", "list", "--until", "soon").stderr


def test_a_look_for_jobs_says_where_it_stopped(run: Run, jobs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many looks; the command goes on from there."""
    monkeypatch.setattr("livewell.queue.admin.LOOK_ROWS", 1)
    monkeypatch.setattr("livewell.cli.commands.jobs.LOOKS", 2)
    said = run("jobs", "list", "--state", "held").stdout
    assert said.endswith(f"2 jobs were looked at; go on with: --after {jobs[1]}\n")
    assert "no held jobs" in run("jobs", "list", "--state", "held", "--after", str(jobs[1])).stdout


def test_a_payload_is_shown_with_its_secrets_hidden_unless_asked_for(run: Run, jobs: list[int]) -> None:
    """--reveal is for who must know."""
    assert lines(run("jobs", "show", str(jobs[0]), "--json"))[0]["payload"] == {"number": 0, "password": "***"}
    assert "hunter2" not in run("jobs", "show", str(jobs[0])).output
    assert "hunter2" in run("jobs", "show", str(jobs[0]), "--reveal").stdout


def test_an_error_is_shown_without_the_password_in_it(run: Run, jobs: list[int]) -> None:
    """In lists, in full, and as JSON."""
    for arguments in (["dead", "list"], ["dead", "list", "--json"], ["dead", "show", str(jobs[3])]):
        shown = run(*arguments).stdout
        assert "ValueError" in shown
        assert "sekret" not in shown


def test_cancelling_answers_for_each_job(run: Run, jobs: list[int]) -> None:
    """One that could not be cancelled makes it exit 1."""
    assert run("jobs", "cancel", str(jobs[0])).exit_code == 0
    result = run("jobs", "cancel", str(jobs[0]), str(jobs[1]), "1", "--json")
    assert [row["answer"] for row in lines(result)] == ["finished", "cancelled", "unknown"]
    assert result.exit_code == 1


def test_retrying_runs_delayed_jobs_and_dead_letters_now(run: Run, jobs: list[int]) -> None:
    """Anything else is said and makes it exit 1."""
    result = run("jobs", "retry", str(jobs[0]), str(jobs[3]), "--json")
    assert [row["answer"] for row in lines(result)] == ["ready", "ready"]
    assert result.exit_code == 0
    again = run("jobs", "retry", "1", "--json")
    assert [row["answer"] for row in lines(again)] == ["unknown"]
    assert again.exit_code == 1


def test_a_dead_letter_is_edited_and_redriven(run: Run, jobs: list[int], tmp_path: Path) -> None:
    """The payload comes from the command line, a file or standard input."""
    letter = str(jobs[3])
    (tmp_path / "new.json").write_text('{"number": 8}')
    assert run("dead", "edit", letter, "--payload", '{"number": 7}').exit_code == 0
    assert run("dead", "edit", letter, "--payload", "@new.json").exit_code == 0
    assert lines(run("dead", "show", letter, "--json"))[0]["payload"] == {"number": 8}
    assert run("dead", "edit", letter, "--payload", "-", input='{"number": 9}').exit_code == 0
    assert run("dead", "redrive", letter).stdout == "1 dead letter redriven.\n"
    shown = lines(run("jobs", "show", letter, "--json"))[0]
    assert (shown["state"], shown["payload"]) == ("ready", {"number": 9})
    assert "is no dead letter, it is ready" in run("dead", "show", letter).stderr


def test_dead_letters_are_discarded_for_good(run: Run, jobs: list[int]) -> None:
    """By id at once; by queue only with --yes; each leaves a line in the audit."""
    result = run("dead", "discard", str(jobs[3]), "1", "--json")
    assert (result.exit_code, lines(result)) == (1, [{"discarded": 1, "missing": 1}])
    assert "add --yes" in run("dead", "discard", "--queue", "broken").stderr
    assert run("dead", "discard", "--queue", "broken", "--yes").stdout == ("1 dead letter discarded in queue broken.\n")
    assert run("dead", "list").stdout == "There are no dead letters.\n"
    assert [line["action"] for line in lines(run("audit", "list", "--json"))] == ["dead.discard", "dead.discard"]


def test_a_dead_letter_that_is_not_there_is_said(run: Run, jobs: list[int]) -> None:
    """Exit 1, and what was there is redriven all the same."""
    assert "dead letter 1: there is none" in run("dead", "edit", "1", "--payload", "{}").stderr
    result = run("dead", "redrive", "1", str(jobs[3]), "--json")
    assert lines(result) == [{"redriven": 1, "kept": 0, "missing": 1}]
    assert result.exit_code == 1


def test_redriving_goes_through_all_pages(run: Run, jobs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """More letters than fit a page, and each is met once."""
    monkeypatch.setattr(dead, "_PAGE", 1)
    assert lines(run("dead", "redrive", "--queue", "broken", "--json")) == [{"redriven": 2, "kept": 0, "missing": 0}]
    assert run("dead", "redrive", "--all").stdout == "There are no dead letters.\n"


def test_a_queue_is_paused_and_resumed(run: Run, jobs: list[int]) -> None:
    """The list shows it; a name that is not a queue is refused with those that are."""
    assert run("queues", "pause", "mail").exit_code == 0
    assert {row["name"]: row["paused_at"] is not None for row in lines(run("queues", "list", "--json"))} == {
        "broken": False,
        "exports": False,
        "mail": True,
    }
    assert "paused" in run("queues", "list").stdout
    assert run("queues", "resume", "mail", "--json").stdout == '{"queue": "mail", "paused": false}\n'
    unknown = run("queues", "pause", "mial")
    assert "queue 'mial' is not declared; there are: broken, exports, mail" in unknown.stderr
    assert unknown.exit_code == 1


# ── schema, settings, psql ──


def test_a_check_fails_on_drift_and_migrate_mends_it(run: Run, livewell_settings: Settings) -> None:
    """Each problem comes with the command that mends it."""
    statement(livewell_settings, "DROP FUNCTION livewell.hasten_job")
    found = run("migrate", "--check", "--json")
    assert found.exit_code == 1
    assert any("hasten_job was dropped by hand" in problem["message"] for problem in lines(found)[0]["problems"])
    assert (
        "drift: Function livewell.hasten_job was dropped by hand. Run: livewell migrate"
        in run("migrate", "--check").stdout
    )
    assert lines(run("migrate", "--json"))[0]["applied"][0] == "queue/functions/operate/hasten_job.sql"


def test_a_schema_that_is_missing_is_refused_with_the_command(
    run: Run, livewell_settings: Settings, tmp_path: Path
) -> None:
    """A worker never migrates."""
    (tmp_path / "shop.py").write_text(SHOP)
    statement(livewell_settings, "DROP SCHEMA livewell CASCADE")
    result = run("worker", "shop:app")
    assert result.stderr == "livewell: worker: This database has no Livewell schema. Run: livewell migrate\n"
    assert result.exit_code == 1
    assert run("migrate").exit_code == 0
    assert "is current" in run("migrate").stdout


def test_the_schema_is_printed_for_a_dba(bare: Run) -> None:
    """Without touching a database."""
    shown = bare("migrate", "--print", "--roles", "none").stdout
    assert "CREATE TABLE livewell.job (" in shown
    assert "CREATE ROLE" not in shown


def test_settings_are_shown_with_passwords_hidden(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a table and as JSON."""
    monkeypatch.setenv("LIVEWELL_WORKER_SLOTS", "7")
    assert "s3cret" not in bare("settings").output
    shown = lines(bare("settings", "--json"))[0]
    assert (shown["database_url"], shown["worker_slots"]) == ("postgresql://user:***@127.0.0.1:1/db", 7)
    assert "default: 20" in bare("settings").stdout


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://u:p%40ss@h:5432/db", ("postgresql://u@h:5432/db", "p@ss")),
        ("postgresql://u@h/db?password=x&sslmode=require", ("postgresql://u@h/db?sslmode=require", "x")),
        ("postgresql://u:p@/db?host=/run/pg", ("postgresql://u@/db?host=/run/pg", "p")),
        ("postgresql://h1,h2/db", ("postgresql://h1,h2/db", None)),
        (r"host=h password='it\'s' dbname=d", ("host=h dbname=d", "it's")),
        ("host=h dbname='a b'", ("host=h dbname='a b'", None)),
    ],
)
def test_psql_gets_the_address_without_the_password(address: str, expected: tuple[str, str | None]) -> None:
    """Arguments can be read by every user of the machine."""
    assert without_password(address) == expected


def test_psql_is_opened_on_the_configured_database(livewell_dsn: str, tmp_path: Path) -> None:
    """What follows goes to psql."""
    with ChildProcess(
        ["-m", "livewell.cli", "db", "psql", "-Atc", "SELECT 40 + 2"], env={"DATABASE_URL": livewell_dsn}, cwd=tmp_path
    ) as child:
        assert child.wait(timeout=60) == 0
        assert child.lines("stdout") == ["42"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, ""), (0, "0 s"), (0.25, "0.2 s"), (59, "59 s"), (60, "1 min"), (3599.9, "1 h"), (200000, "2 d")],
)
def test_a_length_of_time_is_told_in_one_unit(seconds: float | None, shown: str) -> None:
    """Read at a glance."""
    assert span(seconds) == shown


# ── workers, as real processes ──


def test_a_worker_runs_jobs_until_it_is_asked_to_stop(
    worker: Callable[..., ChildProcess], livewell_settings: Settings
) -> None:
    """SIGTERM is a graceful stop with exit code 0; while it runs it is in the list."""
    child = worker("worker", "shop:app", "--queue", "mail", "--name", "walter")
    child.wait_for("worker started", timeout=60)
    enqueue(livewell_settings, "welcome", number=7)
    child.wait_for("welcomed 7")
    child.terminate()
    assert child.wait() == 0
    assert "worker stopped" in child.lines("stderr")[-1]


def test_the_app_may_come_from_the_settings(worker: Callable[..., ChildProcess], livewell_settings: Settings) -> None:
    """LIVEWELL_APP instead of the argument, JSON instead of text, Ctrl-C instead of SIGTERM."""
    child = worker("worker", LIVEWELL_APP="shop:app", LIVEWELL_LOG_FORMAT="json")
    started = json.loads(child.wait_for("worker started", timeout=60))
    assert started["queues"] == ["mail", "slow", "refresh.*", "exports"]
    enqueue(livewell_settings, "welcome", number=8)
    child.wait_for("welcomed 8")
    child.interrupt()
    assert child.wait() == 0


def test_a_second_signal_hurries_and_a_third_ends_on_the_spot(
    worker: Callable[..., ChildProcess], livewell_settings: Settings
) -> None:
    """Even while a handler refuses to be cancelled."""
    child = worker("worker", "shop:app")
    child.wait_for("worker started", timeout=60)
    enqueue(livewell_settings, "endless")
    child.wait_for("begun")
    child.terminate()
    child.wait_for("stopping")
    child.interrupt()
    child.wait_for("not yet")
    child.terminate()
    assert child.wait() == 130


def test_several_processes_are_one_command(worker: Callable[..., ChildProcess]) -> None:
    """A process that is killed is replaced, and one signal stops them all."""
    parent = worker("worker", "shop:app", "--processes", "2", "--name", "w", LIVEWELL_LOG_FORMAT="json")
    for name in ("w-1", "w-2"):
        parent.wait_for(lambda line, name=name: "worker started" in line and f'"{name}"' in line, timeout=60)  # type: ignore[misc]
    first = json.loads(parent.wait_for(lambda line: "worker process started" in line and '"place": 1' in line))
    mark = parent.mark()
    os.kill(first["pid"], signal.SIGKILL)
    parent.wait_for("starting another", since=mark)
    parent.wait_for(lambda line: "worker started" in line and '"w-1"' in line, timeout=60, since=mark)
    parent.terminate()
    assert parent.wait(timeout=30) == 0
    assert "supervisor stopped" in parent.lines("stderr")[-1]


def test_workers_serve_what_they_counted(worker: Callable[..., ChildProcess], livewell_settings: Settings) -> None:
    """Two processes, two ports: jobs by how they ended, due checks, start-up (R23).

    Seen failing on 0.5.0 (no such option: --metrics), and with a worker that ignores it.
    """
    first = free_port(in_row=2)
    parent = worker("worker", "shop:app", "--processes", "2", "--metrics", f"127.0.0.1:{first}")
    for n in (1, 2):
        parent.wait_for(lambda line, n=n: f"127.0.0.1:{first + n - 1}/metrics" in line, timeout=60)  # type: ignore[misc] # mypy cannot infer a lambda with a default
    enqueue(livewell_settings, "welcome", number=5)
    parent.wait_for("welcomed 5", timeout=30)

    def counted() -> list[str]:
        pages = [urlopen(f"http://127.0.0.1:{first + n}/metrics", timeout=5).read().decode() for n in (0, 1)]
        if not all(page.count("\nlivewell_process_startup_seconds ") == 1 for page in pages):
            return []  # the page is there before the worker is
        lines = [line for page in pages for line in page.splitlines()]
        return [line for line in lines if "job_seconds_count{" in line and 'outcome="succeeded"' in line]

    eventually(lambda: len(counted()) == 1, timeout=20)
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"http://127.0.0.1:{first}/", timeout=5)
    parent.terminate()
    assert parent.wait(timeout=30) == 0


def test_a_metrics_address_that_is_wrong_or_taken_is_told(worker: Callable[..., ChildProcess]) -> None:
    """Exit code 2, with the value (S8)."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        child = worker("worker", "shop:app", "--metrics", address)
        assert child.wait(timeout=60) == 2
        assert address in child.lines("stderr")[-1]
    child = worker("worker", "shop:app", "--metrics", "everywhere")
    assert child.wait(timeout=60) == 2
    assert "everywhere" in "\n".join(child.lines("stderr"))


def test_a_worker_on_a_leash_stops_when_its_starter_is_gone(
    worker: Callable[..., ChildProcess], livewell_settings: Settings, tmp_path: Path
) -> None:
    """Its standard input ends; nobody sends it a signal."""
    starter = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'livewell.cli', 'worker', 'shop:app', '--leash']\n"
        "with open('log', 'w') as log:\n"
        "    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log).wait()\n"
    )
    log = tmp_path / "log"
    with ChildProcess(["-c", starter], env=worker("--version")._env, cwd=tmp_path) as child:
        eventually(lambda: log.exists() and "worker started" in log.read_text(), timeout=60)
        enqueue(livewell_settings, "welcome", number=5)
        eventually(lambda: "welcomed 5" in log.read_text())
        child.kill()
        eventually(lambda: "worker stopped" in log.read_text(), timeout=20)


def test_up_brings_schema_and_worker_and_says_where(
    worker: Callable[..., ChildProcess], livewell_settings: Settings, livewell_dsn: str
) -> None:
    """From an empty database to working; the password is not told."""
    statement(livewell_settings, "DROP SCHEMA livewell CASCADE")
    child = worker("up", "shop:app")
    child.wait_for("worker started", timeout=60)
    said = "\n".join(child.lines("stdout"))
    assert "files applied" in said
    assert "shop:app: endless, welcome" in said
    assert "Ctrl-C" in said
    password = without_password(livewell_dsn)[1]
    assert password is None or password not in said
    enqueue(livewell_settings, "welcome", number=9)
    child.wait_for("welcomed 9")
    child.interrupt()
    assert child.wait() == 0


def test_the_embedded_server_is_started_found_and_stopped(tmp_path: Path) -> None:
    """`livewell db`, on a folder of its own."""
    folder = Path("/tmp") / f"livewell-test-db-{secrets.token_hex(4)}"  # noqa: S108 - root's tmp_path is closed to the server's account
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("LIVEWELL_") and name != "DATABASE_URL"
    }
    env["LIVEWELL_DATA_DIR"] = str(folder)

    def livewell(*arguments: str) -> tuple[int, Any]:
        command = [sys.executable, "-m", "livewell.cli", "db", *arguments, "--json"]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    try:
        assert livewell("status") == (1, {"running": False, "data_dir": str(folder)})
        code, started = livewell("start")
        assert (code, started["running"], "***" in started["address"]) == (0, True, True)
        assert livewell("status") == (0, started)
        assert livewell("stop") == (0, {"stopped": True, "data_dir": str(folder)})
        assert livewell("stop")[1]["stopped"] is False
    finally:
        subprocess.run(
            [sys.executable, "-m", "livewell.cli", "db", "stop"],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        subprocess.run(["rm", "-rf", str(folder)], check=False)


def statement(settings: Settings, sql: str) -> None:
    """Run one statement on this test's database."""

    async def execute() -> None:
        async with Livewell(settings) as app:
            await app.database.call(sql)

    asyncio.run(execute())
