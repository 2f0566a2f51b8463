"""A receiver of webhooks that believes no stranger and does nothing twice.

Every delivery is signed (Standard Webhooks) and carries the id of its event, the same in each
attempt. The receiver checks the signature, then keeps the id in the transaction of the effect: an
event that comes again finds its id there and changes nothing.

Run: python examples/webhook_receiver.py (it needs the extra webhooks, and DATABASE_URL)
"""

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import uvicorn
from fastapi import FastAPI, Request, Response
from standardwebhooks import Webhook, WebhookVerificationError

from livewell.outbox.event import Event
from livewell.outbox.sink import Outcome
from livewell.outbox.sinks.kind import SinkContext
from livewell.outbox.sinks.registry import SinkOptions, make_sink
from livewell.testing.processes import eventually_async, free_port

# Yours stands in a variable; make one with: echo whsec_$(openssl rand -base64 32)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the standard's own example
DATABASE = os.environ.get("DATABASE_URL", "postgresql:///")

# ── the receiver: copy from here ──

web = FastAPI()


@web.post("/hooks")
async def take(request: Request) -> Response:
    """Check, then one transaction: the id and the effect, or neither."""
    body = await request.body()
    try:
        event = Webhook(SECRET).verify(body, dict(request.headers))
    except WebhookVerificationError:
        return Response(status_code=401)
    async with await psycopg.AsyncConnection.connect(DATABASE) as connection:
        first = await connection.execute(
            "INSERT INTO shop_event (id) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id",
            (request.headers["webhook-id"],),
        )
        if await first.fetchone() is not None:
            await connection.execute("UPDATE shop_stock SET n = n - %s", (event["n"],))
    return Response(status_code=204)  # also for a repeat: it has arrived, and nobody needs to send it again


# ── to here. The rest sends events, as the outbox does ──


async def send(url: str, event: Event, secret: str) -> Outcome:
    """One delivery through the webhook sink."""
    context = SinkContext({"HOOK": url, "HOOK_KEY": secret}, private_hosts=("127.0.0.1",))
    sink = make_sink(SinkOptions("webhook", "env:HOOK", {"secret": "env:HOOK_KEY"}), context)
    outcomes: list[Outcome] = []
    await sink.send([event], lambda _, outcome: outcomes.append(outcome))
    await sink.close()
    return outcomes[0]


async def stock() -> int:
    """What is left."""
    async with await psycopg.AsyncConnection.connect(DATABASE) as connection:
        row = await (await connection.execute("SELECT n FROM shop_stock")).fetchone()
        assert row is not None
        return int(row[0])


async def main() -> None:
    """Send an event three times, and a forged one."""
    async with await psycopg.AsyncConnection.connect(DATABASE) as connection:
        await connection.execute("DROP TABLE IF EXISTS shop_event, shop_stock")
        await connection.execute("CREATE TABLE shop_event (id text PRIMARY KEY, at timestamptz DEFAULT now())")
        await connection.execute("CREATE TABLE shop_stock AS SELECT 10 AS n")
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(web, host="127.0.0.1", port=port, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    await eventually_async(lambda: server.started)

    event = Event(
        number=1,
        id="8b3e1c1e-3a8e-4d6e-9a51-2f4c4d1a7f10",
        source="/shop",
        topic="orders.created",
        key="order-42",
        tenant="",
        created_at=datetime.now(UTC),
        payload='{"n": 3}',
        trace=None,
        lane=1,
    )
    url = f"http://127.0.0.1:{port}/hooks"
    for attempt in range(3):
        outcome = await send(url, replace(event, attempt=attempt), SECRET)
        print(f"attempt {attempt + 1}: {outcome.verdict}, {await stock()} left")
    forged = await send(url, event, "whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==")
    print(f"with another secret: {forged.verdict} ({forged.detail}), {await stock()} left")
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
