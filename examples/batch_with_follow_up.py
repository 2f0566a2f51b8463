"""A batch: pictures that belong together, and one job that runs when all of them are done.

python examples/batch_with_follow_up.py
"""

import asyncio

from livewell import Livewell

app = Livewell()
sent = asyncio.Event()


@app.task(queue="pictures", attempts=1)
async def shrink(path: str) -> None:
    """One picture; a broken one becomes a dead letter, and the batch goes on."""
    if path == "broken.png":
        raise ValueError(f"{path} is no picture")
    print(f"shrunk {path}")


@app.task(queue="mail")
async def report(album: int) -> None:
    """Enqueued in the transaction in which the last picture ended, once."""
    print(f"album {album}: all pictures are done")
    sent.set()


async def main() -> None:
    """Enqueue four pictures as one batch, and be a worker until the report is sent."""
    await app.open(apply_migrations=True)
    paths = ["a.png", "b.png", "broken.png", "c.png"]
    async with await app.batch(follow_up=report, arguments={"album": 7}) as batch:
        await shrink.options(batch=batch).enqueue_many([{"path": path} for path in paths])
    # Sealed here: nothing more is added, and the follow-up comes when the last picture has ended.
    print(f"batch {batch.id}: {(await batch.state()).total} jobs")
    working = asyncio.create_task(app.work())
    await asyncio.wait_for(sent.wait(), 30)
    state = await batch.state()
    print(f"{state.succeeded} succeeded, {state.failed} failed; the batch has {state.state}")
    working.cancel()
    await asyncio.wait([working])
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
