"""Outbound.get beside bare aiohttp, in one run.

`python -m bench.outbound [--pairs 5] [--calls 3000]`.

The server is a few lines in a process of its own that answers 600 bytes at once; twenty calls are
under way. Prints one JSON line with calls per second of CPU time (medians) and the ratio of each
pair.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import cast

import aiohttp
import uvloop

from livewell.outbound import Outbound

BODY = b"[" + b'{"symbol":"AAPL","price":231.41,"volume":1234567,"timestamp":1794812152},' * 8 + b"{}]"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
AT_ONCE = 20


class _Server(asyncio.Protocol):
    _transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER * data.count(b"\r\n\r\n"))


def _serve(port: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


async def _rate(call: Callable[[], Awaitable[object]], calls: int) -> float:
    """Calls per second of this process's own CPU time: others on the machine do not count."""
    left = iter(range(calls))

    async def caller() -> None:
        for _ in left:
            await call()

    started = time.process_time()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return calls / (time.process_time() - started)


async def _measure(url: str, pairs: int, calls: int) -> dict[str, object]:
    async with (
        aiohttp.ClientSession() as session,
        Outbound(allowed_hosts=[], private_hosts=["127.0.0.1"]) as outbound,
    ):

        async def bare() -> None:
            async with session.get(url) as response:
                await response.read()

        async def ours() -> None:
            await outbound.get(url, body_bytes_max=100_000, before_write=lambda: None)

        await _rate(bare, 300)
        await _rate(ours, 300)
        rates = [(await _rate(bare, calls), await _rate(ours, calls)) for _ in range(pairs)]
    ratios = sorted(mine / theirs for theirs, mine in rates)
    return {
        "aiohttp_per_second": round(statistics.median(theirs for theirs, _ in rates)),
        "outbound_per_second": round(statistics.median(mine for _, mine in rates)),
        "ratio_median": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
    }


def main() -> None:
    """Start the server, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3_000)
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}/stable/quote?symbol=AAPL"
    print(json.dumps(uvloop.run(_measure(url, arguments.pairs, arguments.calls))))
    server.terminate()


if __name__ == "__main__":
    main()
