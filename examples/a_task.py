"""A task: declare it, enqueue it, run it.

python examples/a_task.py             everything in one process, on the embedded Postgres
livewell up examples.a_task:app       the same app as a worker of its own, until Ctrl-C
"""

import asyncio

from livewell import Job, Livewell, Retry

app = Livewell()
greeted = asyncio.Event()


@app.task(queue="mail", attempts=5, timeout="30s")
async def welcome(job: Job, user_id: int, name: str = "you") -> None:
    """Arguments are checked when it is enqueued and again when it runs; `job` is this run of it."""
    if job.attempt == 1:
        raise Retry("the mail server is busy", after="200ms")
    job.progress(100, "sent")
    print(f"Welcome, {name} (user {user_id}, attempt {job.attempt})")
    greeted.set()


async def main() -> None:
    """Enqueue one job, and be a worker until it is done."""
    await app.open(apply_migrations=True)
    enqueued = await welcome.enqueue(user_id=7, name="Ada")
    print(f"job {enqueued.id} is {enqueued.answer}")
    working = asyncio.create_task(app.work())
    await asyncio.wait_for(greeted.wait(), 30)
    working.cancel()
    await asyncio.wait([working])
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
