"""FMP, simulated: the same paths, fields and refusals, in a process of its own.

It keeps a log of its own that tells what was true.

    async with Simulator(folder / "fmp.log", seed=7, knobs=Knobs(calls_max=300)) as fmp:
        await fmp.turn(faults=hostile())
        …
        lies = Judge(fmp.log).never_served(stored)

    request (HTTP) ──▶ respond ──▶ request.read, without the secret ──▶ policy.decide ──▶ answer
                                                                                           │
                         whole at once, or late, dripped, cut ◀── respond ◀── oracle.log ◀─┘

simulator   what a demo or a test does: start it, turn its knobs, kill it
knobs       everything that can be turned while it runs
data/       the market: pure functions of the seed, the symbol and the instant
policy/     what a call gets: a refusal, a fault, or the true answer
respond     how answers leave; the sockets are livewell.testing.http
server      what all connections share, and the orders
oracle/     the log, and what it proves
"""

from livewell.apps.market.simulator.knobs import Confined, Knobs
from livewell.apps.market.simulator.policy.faults import ACCOUNT_WALLS, FAMILIES, FAULTS, STOPPING, hostile
from livewell.apps.market.simulator.request import credential_name
from livewell.apps.market.simulator.simulator import Simulator, SimulatorFailed

__all__ = [
    "ACCOUNT_WALLS",
    "FAMILIES",
    "FAULTS",
    "STOPPING",
    "Confined",
    "Knobs",
    "Simulator",
    "SimulatorFailed",
    "credential_name",
    "hostile",
]
