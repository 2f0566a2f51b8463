"""A client of a limited API: two credentials, a rate, a budget in bytes and a breaker.

The database keeps all of them for the whole fleet.

python examples/limited_api_client.py             against a fake API on this machine, so it needs no network
"""

import asyncio
import tempfile
from pathlib import Path

from livewell import Blame, Breaker, Job, Livewell, Retry
from livewell.testing import FakeUpstream

SECRETS = {
    "main": "fake-main",
    "spare": "fake-spare",
}  # yours come from the environment; the database learns only the names

app = Livewell()
api = app.limiter(
    "quotes-api",
    rate="60/min",  # for each credential, in any minute, as the API counts
    burst=5,
    budget="1MB/30d",
    estimate=300,  # bytes; a kind of job that was measured once is known better
    concurrency=4,
    per_key=1,  # never two calls at once for one symbol
    breaker=Breaker(failures=10, in_row=5),
    credentials=list(SECRETS),
)
app.queue("quotes", limiter="quotes-api", attempts=3)
upstream_port = 0
done: asyncio.Queue[str] = asyncio.Queue()


@app.task(queue="quotes", timeout="10s")
async def refresh(job: Job, symbol: str) -> None:
    """One job, one call, one permit."""
    credential = str(job.credential)
    status, headers, size = await get(job, f"/quote?symbol={symbol}", SECRETS[credential])
    job.used(size)  # charged whatever comes of it
    await api.observe(headers, credential=credential)  # Retry-After, x-ratelimit-*
    if status == 429 or status >= 500:
        print(f"{symbol}: {status} with {credential}, attempt {job.attempt}")
        raise Retry(f"the API answered {status}", after="100ms", blame=Blame.UPSTREAM)
    print(f"{symbol}: {size} bytes with {credential}, attempt {job.attempt}")
    done.put_nowait(symbol)


async def get(job: Job, path: str, secret: str) -> tuple[int, dict[str, str], int]:
    """Status, headers, and bytes as received.

    The permit is checked on the open connection, just before the request is written.
    """
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", upstream_port)
        try:
            job.spend_permit()
            writer.write(f"GET {path} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while len(answer) < 1_000_000 and (piece := await reader.read(65_536)):
                answer += piece
        finally:
            writer.close()
    except OSError as error:
        raise Retry(f"no connection: {error}", blame=Blame.UPSTREAM) from error
    if b"\r\n\r\n" not in answer:
        raise Retry("the API hung up", blame=Blame.UPSTREAM)  # nothing was said with used(), so the estimate is charged
    lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return int(lines[0].split(" ")[1]), headers, len(answer)


async def main() -> None:
    """Ten symbols; the API refuses one call, and asks for a second of silence."""
    global upstream_port  # noqa: PLW0603 - a real API has a fixed address
    symbols = [f"S{n}" for n in range(10)]
    with tempfile.TemporaryDirectory() as folder:
        async with FakeUpstream(Path(folder)) as upstream:
            upstream_port = upstream.port
            await upstream.behave(key="S0", status=429, headers={"Retry-After": "1"}, times=1)
            await app.open(apply_migrations=True)
            already = await charged()  # it is all still there from the last time
            await refresh.enqueue_many([{"symbol": s} for s in symbols], unique_key=_symbol, group=_symbol)
            working = asyncio.create_task(app.work())
            for _ in symbols:
                await asyncio.wait_for(done.get(), 30)
            working.cancel()
            await asyncio.wait([working])
            calls, used = (after - before for before, after in zip(already, await charged(), strict=True))
            counted = upstream.log.read()
            print(f"charged:            {calls} calls, {used} bytes")
            print(f"the API's own log:  {len(counted)} calls, {sum(call.wire_bytes for call in counted)} bytes")
            await app.close()


async def charged() -> tuple[int, int]:
    """Calls and bytes in the limiter's books."""
    async with app.transaction() as tx:
        rows = await tx.fetch("SELECT calls, units FROM livewell.limiter_usage WHERE limiter = 'quotes-api'")
    return sum(calls for calls, _ in rows), sum(units for _, units in rows)


def _symbol(arguments: dict[str, str]) -> str:
    return arguments["symbol"]


if __name__ == "__main__":
    asyncio.run(main())
