"""The demos, and the market page, as a capability."""

from livewell.capability import Capability, CommandEntry, Page
from livewell.web import MARKET

CAPABILITY = Capability(
    name="apps",
    commands=(CommandEntry("demo", "livewell.cli.commands.demo:demo", "Start here", 10),),
    pages=(Page("/market", "Is what I watch fresh?", "Market", MARKET / "market.html"),),
)
