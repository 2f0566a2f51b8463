"""Enqueue in your own transaction: the order and the job that ships it exist together, or neither does.

python examples/transactional_enqueue.py
"""

import asyncio

from livewell import Job, Livewell

app = Livewell()
shipped = asyncio.Event()


@app.task(queue="orders")
async def ship(job: Job, order_id: int) -> None:
    """The effect and the end of the job commit together: however often it is run, the order is shipped once."""
    async with job.transaction() as tx:
        await tx.execute("UPDATE orders SET shipped = shipped + 1 WHERE id = %s", [order_id])
    shipped.set()


async def order(order_id: int, *, card_declined: bool) -> None:
    """Insert the order and enqueue its job in one transaction."""
    async with app.transaction() as tx:
        await tx.execute("INSERT INTO orders (id) VALUES (%s)", [order_id])
        await ship.enqueue(order_id=order_id, tx=tx)
        if card_declined:
            raise ValueError("card declined")


async def main() -> None:
    """One order goes through, one does not."""
    await app.open(apply_migrations=True)
    async with app.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS orders")
        await tx.execute("CREATE TABLE orders (id integer PRIMARY KEY, shipped integer NOT NULL DEFAULT 0)")
    await order(1, card_declined=False)
    try:
        await order(2, card_declined=True)
    except ValueError as error:
        print(f"order 2: {error}; neither the order nor a job exists")
    working = asyncio.create_task(app.work())
    await asyncio.wait_for(shipped.wait(), 30)
    working.cancel()
    await asyncio.wait([working])
    async with app.transaction() as tx:
        orders = await tx.fetch("SELECT id, shipped FROM orders ORDER BY id")
        print(f"orders and how often each was shipped: {orders}")
        await tx.execute("DROP TABLE orders")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
