"""What this package offers to Livewell. Nothing else is imported here: parts are references."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, Page, View

_HERE = Path(__file__).parent

CAPABILITY = Capability(
    name="beacons",
    migrations=_HERE / "sql",
    declare="livewell_beacons.work:declare",
    api={"beacons": "livewell_beacons.beacons:Beacons"},
    queues=("beacons",),
    work="livewell_beacons.work:work",
    housekeeping=(Chore("SELECT livewell.prune_beacons(%s, %s)", lambda _: (90, 1000)),),
    gauges="livewell_beacons.operations:GAUGES",
    checks="livewell_beacons.operations:CHECKS",
    stuck="livewell_beacons.operations:stuck",
    routes=("livewell_beacons.routes:router",),
    commands=(CommandEntry("beacons", "livewell_beacons.commands:beacons", "Look and mend"),),
    pages=(Page("/beacons", "Who has fallen silent?", "Beacons", _HERE / "page.html"),),
    views=(View("/beacons/all", "Which programs report?", "livewell_beacons.pages:panels", "Programs"),),
    overview="livewell_beacons.pages:overview",
    acts=(Act("/beacons/{name}/forget", "livewell_beacons.pages:forget"),),
    templates=_HERE / "templates",
    docs=_HERE / "docs",
)
