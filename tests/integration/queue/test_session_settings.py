"""Our sessions work whatever the database has for defaults.

A managed server's, a DBA's, Debian's (S8).
"""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from livewell import JobState, Livewell, Settings
from livewell.db.session import NEEDED
from tests.integration.queue.bench import Open

HOSTILE = {
    "jit": "on",
    "jit_above_cost": "0",
    "default_transaction_isolation": "serializable",
    "lock_timeout": "1ms",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "standard_conforming_strings": "off",
    "TimeZone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "extra_float_digits": "-5",
}


@pytest.fixture
def hostile(livewell_dsn: str) -> None:
    """The database as nobody would set it, and some do."""
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        for name, value in HOSTILE.items():
            admin.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(admin.info.dbname), sql.Identifier(name), sql.Literal(value)
                )
            )


@pytest.mark.usefixtures("hostile")
async def test_jobs_run_and_the_state_is_read_under_hostile_defaults(open_app: Open) -> None:
    """Enqueue, claim, finish, times, intervals and letters of every alphabet.

    Seen failing without DateStyle in NEEDED: the driver "can't parse timestamptz with DateStyle
    'SQL, DMY'".
    """
    app = Livewell(Settings())
    got: list[str] = []

    @app.task()
    async def greet(name: str) -> None:
        got.append(name)

    bench = await open_app(app)
    job = await greet.enqueue(name="Ærøskøbing 東京 \\ '")
    async with bench.working():
        record = await bench.until(job.id, JobState.SUCCEEDED)
    assert got == ["Ærøskøbing 東京 \\ '"]
    assert record["finished_at"] >= record["created_at"]
    assert await bench.scalar("SELECT interval '1 day 2 hours'") == timedelta(days=1, hours=2)
    assert (await bench.scalar("SELECT livewell.system_state()"))["queue"]["how"] != "failed"
    link = app.database.link()
    for name, value in NEEDED.items():
        assert str(await bench.scalar("SELECT current_setting(%s)", name)).startswith(value), name
        assert str((await link.call("SELECT current_setting(%s)", (name,)))[0][0]).startswith(value), name
    await link.close()
