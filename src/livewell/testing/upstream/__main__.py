"""`python -m livewell.testing.upstream LOG`: the fake upstream's process; FakeUpstream starts it."""

import asyncio
import random
import signal
import sys
from argparse import ArgumentParser
from pathlib import Path

from livewell.testing.upstream.call import CallLog
from livewell.testing.upstream.server import Server

HOST = "127.0.0.1"
BACKLOG = 1_024
PORT_ATTEMPTS_MAX = 50
# Below the kernel's ephemeral ports (32768 and up): a client that dials a dead upstream again and again could otherwise
# be given the very port it dials, connect to itself, and keep it from us when we restart.
PORTS = range(20_000, 32_000)


async def _listen(server: Server, port: int) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    choices = [port] if port else random.SystemRandom().sample(PORTS, PORT_ATTEMPTS_MAX)
    for choice in choices[:-1]:
        try:
            return await loop.create_server(server.protocol, HOST, choice, backlog=BACKLOG)
        except OSError:
            continue  # taken
    return await loop.create_server(server.protocol, HOST, choices[-1], backlog=BACKLOG)


async def _main(log: Path, port: int, seed: int) -> None:
    listener = await _listen(Server(CallLog(log), seed=seed), port)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    sys.stdout.write(f"listening on {listener.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await stop.wait()
    listener.close()  # connections end when asyncio.run cancels their tasks, each with its line in the log


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.log, arguments.port, arguments.seed))
