"""Emit many events in one transaction: an import of orders, and one event for each, in their order.

python examples/emit_many.py
"""

import asyncio
from collections.abc import Sequence

from livewell import Livewell, NewEvent
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Settle

ORDERS = 5_000
app = Livewell()


class Seen:
    """A sink that remembers the order of each key."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self) -> None:
        self.keys: dict[tuple[str, str | None], list[int]] = {}
        self.taken = 0
        self.all_are_there = asyncio.Event()

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to give back."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Take them all."""
        for event in events:
            self.keys.setdefault((event.tenant, event.key), []).append(event.number)
            settle(event, DELIVERED)
        self.taken += len(events)
        if self.taken >= ORDERS:
            self.all_are_there.set()


seen = Seen()
app.outbox.topic("orders.imported")
app.outbox.sink("seen", lambda: seen)


async def main() -> None:
    """The file is wrong once, and then it is not."""
    await app.open(apply_migrations=True)
    events = [
        NewEvent(topic="orders.imported", key=f"customer {n % 50}", tenant=f"shop {n % 3}", payload={"order": n})
        for n in range(ORDERS)
    ]
    try:
        async with app.transaction() as tx:
            await app.emit.many(events, tx=tx)
            raise ValueError("line 5001 is no order")
    except ValueError as error:
        print(f"first import: {error}; no event exists")
    async with app.transaction() as tx:
        ids = await app.emit.many(events, tx=tx)
    print(f"second import: {len(ids):,} events in one statement")
    working = asyncio.create_task(app.work())
    await asyncio.wait_for(seen.all_are_there.wait(), 60)
    working.cancel()
    await asyncio.wait([working])
    in_order = all(numbers == sorted(numbers) for numbers in seen.keys.values())
    print(f"{seen.taken:,} events arrived, {len(seen.keys)} keys, each in order: {in_order}")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
