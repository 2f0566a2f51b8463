"""Capabilities that are broken on purpose.

Each is refused as a whole, in words that say what to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from livewell import Livewell, Settings
from livewell.alerts.rules import evaluate
from livewell.capability import capabilities
from livewell.db.migrate import Bundle
from livewell.errors import ConfigurationError, MigrationError
from livewell.server.routes import routers
from tests.integration.capability.conftest import Offer

ROUTES = """
from fastapi import APIRouter
router = APIRouter(prefix="/v1")
@router.get("{path}")
async def answer(): ...
CAPABILITY = Capability("routes", routes=("toy_routes:router",))
"""

BROKEN_LIST = """
CREATE FUNCTION livewell.rules_toys() RETURNS TABLE (name text, level text, hysteresis interval, meaning text)
LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no toys'; END $$
"""


def refusal() -> str:
    with pytest.raises(ConfigurationError) as caught:
        capabilities()
    return str(caught.value)


def test_two_capabilities_of_one_name(offer: Offer) -> None:
    """The second is named with its package; so is who has the name."""
    offer("one", 'CAPABILITY = Capability("twin")')
    assert [one.name for one in capabilities()][-1] == "twin"
    offer("two", 'CAPABILITY = Capability("twin")')
    assert "capability twin of package toy-two: its name twin is taken by capability twin" in refusal()
    assert "pip uninstall toy-two" in refusal()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('CAPABILITY = Capability("queue")', "its name queue is taken by capability queue"),
        (
            'CAPABILITY = Capability("a", commands=(CommandEntry("jobs", "toy_bad:x"),))',
            "its command jobs is taken by capability queue",
        ),
        ('CAPABILITY = Capability("a", api={"alerts": "toy_bad:x"})', "its api alerts is taken by capability alerts"),
        ("raise ImportError('no libtoy')", "cannot be loaded: ImportError: no libtoy"),
        ("", "cannot be loaded: AttributeError"),
        ("CAPABILITY = {}", "is of type dict, not a livewell.capability.Capability"),
        ('CAPABILITY = Capability("Bad Name")', "a name has 1 to 31 of a-z 0-9 _"),
        ('CAPABILITY = Capability("a", work="nowhere")', "work is 'nowhere'; write package.module:name"),
        ('CAPABILITY = Capability("a", work="toy_gone.work:work")', "and there is no such module"),
        (
            'from pathlib import Path\nCAPABILITY = Capability("a", migrations=Path("/nowhere"))',
            "its migrations should be in /nowhere, which is no folder",
        ),
        (
            'from pathlib import Path\nCAPABILITY = Capability("a", pages=(Page("/a", "?", "A", Path("/no.html")),))',
            "page /a should be in /no.html, which is no file",
        ),
        ('CAPABILITY = Capability("a", future_part="x:y")', "unexpected keyword argument 'future_part'"),
    ],
)
def test_a_broken_capability_is_refused(offer: Offer, source: str, complaint: str) -> None:
    """With what is wrong, the package, and how to get rid of it."""
    offer("bad", source)
    said = refusal()
    assert complaint in said
    assert "toy-bad" in said
    assert "pip uninstall toy-bad" in said


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("/jobs", "route GET /v1/jobs is answered by capability queue"),
        ("/jobs/{number}", "answered by capability queue"),
    ],
)
def test_a_route_that_somebody_answers_already(offer: Offer, path: str, complaint: str) -> None:
    """Also when its parameter has another name."""
    offer("routes", ROUTES.format(path=path))
    with pytest.raises(ConfigurationError, match="capability routes: route GET") as caught:
        routers()
    assert complaint in str(caught.value)


def test_a_route_outside_of_the_gate(offer: Offer) -> None:
    """There nobody is asked for a key."""
    offer("routes", ROUTES.format(path="/jobs").replace("/v1", "/toys"))
    with pytest.raises(ConfigurationError, match="is outside of /v1/, where nobody is asked for a key"):
        routers()


def test_routes_that_are_none(offer: Offer) -> None:
    """The type is told."""
    offer("routes", 'router = 3\nCAPABILITY = Capability("routes", routes=("toy_routes:router",))')
    with pytest.raises(ConfigurationError, match=r"which is of type int, not a fastapi.APIRouter"):
        routers()


def test_a_part_whose_import_fails(offer: Offer, site: Path) -> None:
    """Known when it is asked for; who asks does not start."""
    (site / "toy_part.py").write_text("1 / 0")
    offer("routes", 'CAPABILITY = Capability("routes", routes=("toy_part:router",))')
    with pytest.raises(ConfigurationError, match=r"routes is toy_part:router, which cannot be imported: ZeroDivisionE"):
        routers()


def test_a_function_that_somebody_has(offer: Offer, site: Path) -> None:
    """All functions are in one schema: replacing one of ours is refused before anything runs."""
    (site / "sql" / "functions").mkdir(parents=True)
    (site / "sql" / "functions" / "claim_jobs.sql").write_text("CREATE OR REPLACE FUNCTION livewell.claim_jobs() …")
    offer(
        "sql",
        'from pathlib import Path\nCAPABILITY = Capability("sql", migrations=Path(__file__).parent / "sql")',
    )
    with pytest.raises(MigrationError, match=r"creates livewell.claim_jobs, which capability queue has"):
        Bundle.load()


async def test_a_list_of_rules_that_fails_silences_no_other_rule(
    livewell_dsn: str, livewell_settings: Settings
) -> None:
    """It is told like a rule that fails: a warning, and rule_failed of the doctor."""
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute(BROKEN_LIST)
    async with Livewell(livewell_settings) as app:
        told = await evaluate(app.database)
        assert told.failed == ("toys",)
        assert told.rules > 15
        [failed] = [one for one in await app.alerts.rules() if one["failed_at"] is not None]
        assert failed["name"] == "toys"


def test_the_command_line_refuses_in_one_line_and_keeps_its_own_commands(offer: Offer, site: Path) -> None:
    """`livewell --help` cannot be whole, so it is not shown.

    A page of ours needs no other package.
    """
    offer("bad", "raise ImportError('no libtoy')")
    environment = {**os.environ, "PYTHONPATH": f"{site}:{os.environ.get('PYTHONPATH', '')}"}

    def livewell(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "livewell.cli", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    shown = livewell("--help")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("livewell: capability bad (entry point toy_bad:CAPABILITY of package toy-bad)")
    assert len(shown.stderr.splitlines()) == 1
    assert livewell("docs", "operations/doctor").returncode == 0
