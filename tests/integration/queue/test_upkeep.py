"""What a worker keeps in order beside running jobs."""

import pytest

from livewell import Livewell, Settings
from livewell.db.scratch import TestClock
from livewell.queue.worker.holding import Holding
from livewell.queue.worker.upkeep import Upkeep
from livewell.schedule.housekeeping import Housekeeping
from tests.integration.queue.bench import Bench, Open


@pytest.fixture
async def bench(open_app: Open) -> Bench:
    return await open_app(Livewell(Settings()))


async def test_housekeeping_lets_go_of_what_is_past_its_time(bench: Bench, livewell_clock: TestClock) -> None:
    """History after 7 days, warnings and statistics after 30, dead letters after 30.

    What is younger stays.
    """
    call = bench.app.database.call
    await call("SELECT livewell.warn('test', 'old')")
    await call("SELECT livewell.add_stats('{q}', '{k}', '{succeeded}', '{1}', '{1}')")
    livewell_clock.advance(31 * 86400)
    await call("SELECT livewell.warn('test', 'new')")
    assert await Housekeeping(bench.app.database).run() > 2
    assert await bench.scalar("SELECT array_agg(what) FROM livewell.warning") == ["new"]
    assert await bench.scalar("SELECT count(*) FROM livewell.stat") == 0
    oldest = await bench.scalar("SELECT min(relname) FROM pg_class WHERE relname LIKE 'job_history_2%%'")
    newest_dropped = await bench.scalar(
        "SELECT 'job_history_' || to_char(livewell.now() - interval '8 days', 'YYYYMMDD')"
    )
    assert oldest > newest_dropped


async def test_what_a_worker_counted_becomes_statistics(bench: Bench) -> None:
    """Counts and milliseconds of the minute, and each tolerated failure as a counted row."""
    upkeep = Upkeep(bench.app.database, Holding(), on_ready=lambda: None)
    for _ in range(3):
        upkeep.count(("mail", "welcome", "succeeded"), [0.5])
    upkeep.warn("worker", "something was tolerated", "sample")
    try:
        await upkeep.flush()
    finally:
        await upkeep.close()
    assert await bench.scalar("SELECT (n, ms)::text FROM livewell.stat") == "(3,1500)"
    assert await bench.scalar("SELECT n FROM livewell.warning WHERE what = 'something was tolerated'") == 1
