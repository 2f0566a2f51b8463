"""job.transaction(): the effect and the end of the job commit together."""

import psycopg
import pytest
from psycopg.rows import dict_row

from livewell import Job, JobState, Livewell, LivewellError, Settings
from livewell.testing.processes import eventually_async
from tests.integration.queue.bench import Bench, Open


@pytest.fixture
def app() -> Livewell:
    return Livewell(Settings())


async def prepared(app: Livewell, open_app: Open) -> Bench:
    bench = await open_app(app)
    await bench.app.database.call("CREATE TABLE effect (job_id bigint)")
    return bench


async def test_the_effect_and_the_end_commit_together(app: Livewell, open_app: Open) -> None:
    """Right after the block the job is finished and its effect is there."""
    states: list[str] = []

    @app.task()
    async def act(job: Job) -> None:
        async with job.transaction() as tx:
            await tx.execute("INSERT INTO effect VALUES (%s)", [job.id])
        states.append(str((await app.admin.job(job.id))["state"]))

    bench = await prepared(app, open_app)
    job = await act.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.SUCCEEDED)
    assert states == ["succeeded"]
    assert await bench.scalar("SELECT count(*) FROM effect") == 1


async def test_a_failure_inside_rolls_both_back(app: Livewell, open_app: Open) -> None:
    """No effect, and the job has failed."""

    @app.task(attempts=1)
    async def act(job: Job) -> None:
        async with job.transaction() as tx:
            await tx.execute("INSERT INTO effect VALUES (%s)", [job.id])
            raise ValueError("no")

    bench = await prepared(app, open_app)
    job = await act.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.FAILED)
    assert await bench.scalar("SELECT count(*) FROM effect") == 0


async def test_a_zombies_transaction_writes_nothing(app: Livewell, open_app: Open) -> None:
    """When the job has changed hands meanwhile, the effect is rolled back and the new owner's run stands."""

    @app.task(attempts=1)
    async def act(job: Job) -> None:
        async with job.transaction() as tx:
            await tx.execute("INSERT INTO effect VALUES (%s)", [job.id])
            # Somebody took it away: a new fence, as a new claim would give it.
            await app.database.call(
                "UPDATE livewell.job SET fence = nextval('livewell.fence_seq') WHERE id = %s", (job.id,)
            )

    bench = await prepared(app, open_app)
    job = await act.enqueue()
    async with bench.working() as worker:

        async def dropped() -> bool:
            return worker.finished == 1

        await eventually_async(dropped, timeout=20)
    assert await bench.scalar("SELECT count(*) FROM effect") == 0
    assert await bench.scalar("SELECT count(*) FROM livewell.job_history WHERE id = %s", job.id) == 0


async def test_a_swallowed_error_does_not_look_like_a_commit(app: Livewell, open_app: Open) -> None:
    """Postgres turns such a COMMIT into a rollback; that must be heard."""
    bench = await prepared(app, open_app)
    with pytest.raises(LivewellError, match="nothing was committed"):
        async with bench.app.transaction() as tx:
            await tx.execute("INSERT INTO effect VALUES (1)")
            with pytest.raises(psycopg.errors.UndefinedTable):
                await tx.execute("SELECT * FROM no_such_table")


async def test_an_enqueue_in_a_transaction_exists_exactly_if_it_commits(app: Livewell, open_app: Open) -> None:
    """Rolled back with the caller's rows, committed with them."""

    @app.task()
    async def act() -> None: ...

    bench = await prepared(app, open_app)
    with pytest.raises(ValueError, match="changed my mind"):
        async with app.transaction() as tx:
            lost = await act.enqueue(tx=tx)
            raise ValueError("changed my mind")
    async with app.transaction() as tx:
        kept = await act.enqueue(tx=tx)
    assert await bench.scalar("SELECT array_agg(id) FROM livewell.job") == [kept.id]
    assert kept.id != lost.id


async def test_a_foreign_psycopg_transaction_can_carry_an_enqueue(app: Livewell, open_app: Open) -> None:
    """A connection somebody else opened, with rows as dictionaries, works as tx=."""

    @app.task()
    async def act() -> None: ...

    bench = await prepared(app, open_app)
    async with await psycopg.AsyncConnection.connect(bench.app.database.conninfo, row_factory=dict_row) as connection:
        job = await act.options(unique_key="k").enqueue(tx=connection)
        merged = await act.options(unique_key="k").enqueue(tx=connection)
    assert (merged.answer, merged.id) == ("merged", job.id)
    assert await bench.state(job.id) == "ready"
