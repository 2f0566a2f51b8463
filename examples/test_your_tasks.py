"""Testing your own tasks: a real database per test, a clock you move, a worker inside the test.

    pip install "livewell[test]"
    pytest examples/test_your_tasks.py

The fixtures come with the package (they start with livewell_); nothing has to be configured. An
async test that names one of them needs no mark; one that gets them through a fixture of your own
needs @pytest.mark.asyncio, or asyncio_mode = "auto" in the configuration of pytest.
"""

from livewell import Job, Livewell, Retry, Settings
from livewell.db.scratch import TestClock
from livewell.model import Failed, Succeeded
from livewell.testing import InlineWorker, opened

app = Livewell(Settings())
sent: list[int] = []


@app.task(queue="mail", attempts=3)
async def remind(job: Job, user_id: int) -> None:
    """The code under test: it fails the first time."""
    if job.attempt == 1:
        raise Retry("not yet", after="10m")
    sent.append(user_id)


async def test_a_reminder_is_sent_ten_minutes_after_it_failed(
    livewell_settings: Settings, livewell_clock: TestClock
) -> None:
    """Nothing sleeps: the retry is ten minutes away, so the clock is moved."""
    async with opened(app, livewell_settings):
        await remind.enqueue(user_id=7)
        worker = InlineWorker(app)

        assert [run.outcome for run in await worker.run()] == [Failed("not yet", 600.0)]
        assert await worker.run() == []

        livewell_clock.advance(601)
        assert [run.outcome for run in await worker.run()] == [Succeeded()]
        assert sent == [7]
