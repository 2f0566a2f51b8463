"""`python -m livewell.apps.market.simulator --log FILE`: the simulator's process.

One JSON line says where it listens.
"""

import asyncio
import json
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.policy.faults import FAMILIES, FAULTS, hostile
from livewell.apps.market.simulator.respond import Responder
from livewell.apps.market.simulator.server import Server
from livewell.errors import LivewellError


def main() -> int:
    """Read the arguments and serve until SIGTERM or Ctrl-C."""
    parser = ArgumentParser(prog="python -m livewell.apps.market.simulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--log", type=Path, required=True, help="appended to; one JSON line per call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--symbols", type=int, default=1_000, help="how many there are")
    parser.add_argument("--tick", type=int, default=5, help="seconds between two prices")
    parser.add_argument("--calls-max", type=int, default=None, help="calls per window and credential")
    parser.add_argument("--window", type=float, default=60.0, help="seconds")
    parser.add_argument("--hostile", action="store_true", help=f"every family of faults: {', '.join(FAMILIES)}")
    parser.add_argument("--knobs", default="{}", help="any other knobs, as JSON (see GET /_knobs)")
    parser.add_argument("--list-faults", action="store_true", help="name every fault and stop")
    arguments = parser.parse_args()
    if arguments.list_faults:
        sys.stdout.write("".join(f"{fault.family}\t{fault.name}\n" for fault in FAULTS.values()))
        return 0
    try:
        knobs = Knobs(
            tick_seconds=arguments.tick,
            calls_max=arguments.calls_max,
            window_seconds=arguments.window,
            faults=hostile() if arguments.hostile else {},
        ).changed(json.loads(arguments.knobs))
        server = Server(arguments.log, seed=arguments.seed, symbols=arguments.symbols, knobs=knobs)
    except (LivewellError, ValueError) as error:
        sys.stderr.write(f"livewell simulator: {error}\n")
        return 2
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(server, arguments.port))
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415 - not on Windows

    return uvloop.new_event_loop


async def _serve(server: Server, port: int) -> None:
    http = Responder(server).http
    await http.listen(port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    sys.stdout.write(json.dumps({"url": f"{http.url}/stable", "port": http.port}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await http.stop()


if __name__ == "__main__":
    sys.exit(main())
