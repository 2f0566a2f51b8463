"""FMP, simulated: the same paths, fields and refusals, in a process of its own, with a log of its own that tells what was true.

    async with Simulator(folder / "fmp.log", seed=7, knobs=Knobs(calls_max=300)) as fmp:
        await fmp.turn(faults=hostile())
        …
        lies = Judge(fmp.log).never_served(stored)

Read simulator.py (what a demo does), knobs.py and fault.py (what can be turned), judge.py (what the log proves). The server
is request → clerk → connection; the data is market → quote, profile, statement, earnings, history, news → dataset.
"""

from livewell.apps.market.simulator.fault import ACCOUNT_WALLS, FAMILIES, FAULTS, STOPPING, hostile
from livewell.apps.market.simulator.knobs import Confined, Knobs
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
