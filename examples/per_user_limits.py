"""Limits per user: everybody may have three exports running, and nobody waits for somebody else's.

python examples/per_user_limits.py
"""

import asyncio
from collections import Counter

from livewell import Livewell

app = Livewell()
app.queue("exports", group_limit=3)
running: Counter[str] = Counter()
most: Counter[str] = Counter()
done: asyncio.Queue[str] = asyncio.Queue()


@app.task(queue="exports")
async def export(user: str, document: int) -> None:
    """The work itself knows nothing of limits."""
    running[user] += 1
    most[user] = max(most[user], running[user])
    await asyncio.sleep(0.05)
    running[user] -= 1
    done.put_nowait(f"{user}/{document}")


async def main() -> None:
    """Ann asks for ten exports, then Bob for two."""
    await app.open(apply_migrations=True)
    await export.options(group="ann").enqueue_many([{"user": "ann", "document": n} for n in range(10)])
    await export.options(group="bob").enqueue_many([{"user": "bob", "document": n} for n in range(2)])
    waiting = Counter(job["state"] for job in await app.admin.jobs(queue="exports"))
    print(f"before a worker comes: {waiting['ready']} ready, {waiting['held']} held behind their user's limit")
    working = asyncio.create_task(app.work())
    finished = [await asyncio.wait_for(done.get(), 30) for _ in range(12)]
    working.cancel()
    await asyncio.wait([working])
    print(f"{len(finished)} exports; at most {most['ann']} of Ann's and {most['bob']} of Bob's ran at once")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
