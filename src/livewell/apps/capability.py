"""The demos, as a capability."""

from livewell.capability import Capability, CommandEntry

CAPABILITY = Capability(
    name="apps",
    commands=(CommandEntry("demo", "livewell.cli.commands.demo:demo", "Start here", 10),),
)
