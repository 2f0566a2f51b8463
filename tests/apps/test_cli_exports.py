"""`livewell resumes` and `livewell exports` as people meet them (E14, E15, E16)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from livewell.cli import cli
from livewell.cli.administration import person_here
from tests.support.exports_sql import ExportSession, item

Run = Callable[..., Result]
NOWHERE = "c5b4ff6c-7a2b-4f0e-9a61-0d5a53b8bd11"


@pytest.fixture
def run(livewell_dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A command in this process, on this test's database, with files of its own."""
    monkeypatch.setenv("DATABASE_URL", livewell_dsn)
    monkeypatch.setenv("LIVEWELL_EXPORT_STORE", str(tmp_path / "files"))
    return lambda *arguments: CliRunner().invoke(cli, [*arguments], prog_name="livewell")


@pytest.fixture
def resume(tmp_path: Path) -> Path:
    path = tmp_path / "resume.json"
    path.write_text(json.dumps({"basics": {"name": "Ann Lee", "summary": "CANARY-c0de"}}))
    return path


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_file_goes_in_and_comes_out(run: Run, resume: Path, tmp_path: Path) -> None:
    """E16: for the person at this terminal, unless a user is named; the content is what it was."""
    made = document(run("resumes", "import", str(resume), "--name", "For Acme", "--json"))
    [listed] = [json.loads(line) for line in run("resumes", "list", "--json").stdout.splitlines()]
    assert (listed["id"], listed["name"], listed["version"]) == (made["id"], "For Acme", 1)
    assert "For Acme" in run("resumes", "list").stdout
    assert "There are no documents" in run("resumes", "list", "--user", "key:other").stdout

    assert json.loads(run("resumes", "export", made["id"]).stdout) == json.loads(resume.read_text())
    assert run("resumes", "export", made["id"], "--to", str(tmp_path / "out.json")).exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(resume.read_text())
    assert run("resumes", "export", made["id"], "--user", "key:other").exit_code != 0


def test_a_file_that_is_no_resume_is_refused_by_its_place(run: Run, tmp_path: Path) -> None:
    """E15: without its text."""
    path = tmp_path / "bad.json"
    path.write_text('{"work": "CANARY-c0de"}')
    result = run("resumes", "import", str(path))
    assert result.exit_code != 0
    assert "document.work" in str(result.exception or "") + result.output
    assert "CANARY" not in result.output


def test_exports_are_listed_shown_and_cancelled_without_a_word_of_their_documents(run: Run, livewell_dsn: str) -> None:
    """E15: no name of a file, no id of a document."""
    run("exports", "list")  # declares the kind
    with ExportSession(livewell_dsn) as session:
        made = session.ask(
            "ann", {**item("secret-id", template="minimal"), "file_name": "CANARY-c0de.pdf"}, bytes_max=10**9
        )
    key = made["items"][0]["id"]
    listed, shown = run("exports", "list"), run("exports", "show", key)
    assert key in listed.stdout
    assert "livewell why job" in shown.stdout
    for result in (listed, shown, run("exports", "list", "--json"), run("exports", "show", key, "--json")):
        assert "CANARY" not in result.output
        assert "secret-id" not in result.output

    assert document(run("exports", "cancel", key, "--json")) == {"id": key, "answer": "cancelled"}
    again = run("exports", "cancel", key)
    assert (again.exit_code, "ended already" in again.stdout) == (1, True)
    assert json.loads(run("exports", "list", "--state", "cancelled", "--json").stdout)["id"] == key
    assert run("exports", "list", "--state", "running").stdout.strip() == "There is no such export."
    assert run("exports", "show", NOWHERE).exit_code == 1


def test_cleaning_up_removes_files_that_lost_their_row(run: Run, livewell_dsn: str, tmp_path: Path) -> None:
    """E11: when the whole store is looked through; what is of another installation stays."""
    run("exports", "list")  # declares the kind
    with ExportSession(livewell_dsn) as session:
        key = session.ask("ann", item("cv", template="minimal"), bytes_max=10**9)["items"][0]["id"]
    late, foreign = (tmp_path / "files" / ("a" * 32) / export / "1.pdf" for export in (key, NOWHERE))
    for stray in (late, foreign):
        stray.parent.mkdir(parents=True)
        stray.write_bytes(b"%PDF")
    assert document(run("exports", "cleanup", "--json"))["removed"] == 0
    assert "1 file removed." in run("exports", "cleanup", "--sweep").stdout
    assert (late.exists(), foreign.exists()) == (False, True)


def test_which_characters_can_be_printed(run: Run) -> None:
    """By script; and of a text, which cannot, by their names."""
    told = document(run("exports", "fonts", "--json"))
    assert told["fonts"]
    assert told["scripts"]
    assert run("exports", "fonts", "Zoë Łukasz Ωmega Жук").stdout.strip() == "Every character can be printed."
    missing = run("exports", "fonts", "ok \U0001f600")
    assert (missing.exit_code, missing.stdout.strip()) == (1, "U+1F600 GRINNING FACE")


def test_the_person_of_a_terminal_is_the_person_of_its_login_links(run: Run, livewell_dsn: str, resume: Path) -> None:
    """What is imported here is in the browser that follows a link of here."""
    run("resumes", "import", str(resume))
    run("keys", "login")
    with psycopg.connect(livewell_dsn) as connection:
        [(owner,)] = connection.execute("SELECT user_id FROM livewell.resume_document").fetchall()
        [(name,)] = connection.execute("SELECT name FROM livewell.api_key WHERE kind = 'link'").fetchall()
    assert owner == person_here()
    assert name == f"login link of {owner}"
