"""What every sink of the outbox must do, as checks that run against any of them.

    @pytest.mark.parametrize("check", checks("network", "login"), ids=lambda check: check.__name__)
    async def test_my_sink(check: Check, lab: MyLab) -> None:
        await check(lab)

A lab makes sinks of one kind, reads what their receiver really has, and breaks what lies between.
A check raises Broken, an AssertionError, which says what the sink did wrong.

lab           what a lab offers, and ProxiedLab for receivers that are reached by TCP
small_relay   sends as the relay does, and writes down what the sink said
judge         compares what the sink said with what the receiver has
checks        the checks themselves
"""

from livewell.testing.sinks.checks import Check, checks
from livewell.testing.sinks.judge import Broken
from livewell.testing.sinks.lab import ProxiedLab, Received, SinkLab

__all__ = ["Broken", "Check", "ProxiedLab", "Received", "SinkLab", "checks"]
