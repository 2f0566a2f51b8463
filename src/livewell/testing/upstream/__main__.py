"""`python -m livewell.testing.upstream LOG`: the fake upstream's process.

FakeUpstream starts it.
"""

import asyncio
import signal
import sys
from argparse import ArgumentParser
from pathlib import Path

from livewell.testing.upstream.call import CallLog
from livewell.testing.upstream.server import Server


async def _main(log: Path, port: int, seed: int) -> None:
    server = Server(CallLog(log), seed=seed)
    await server.http.listen(port)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    sys.stdout.write(f"listening on {server.http.port}\n")
    sys.stdout.flush()
    await stop.wait()
    await server.http.stop()


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.log, arguments.port, arguments.seed))
