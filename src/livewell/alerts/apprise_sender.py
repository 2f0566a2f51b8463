"""Send through apprise, which speaks to a hundred services (`pip install livewell[apprise]`).

apprise makes its own calls. Before it does, we look up the host of its address and our guard judges
it; services with fixed hosts have none to judge. What apprise does afterwards (a second look-up,
redirects) is out of our hands, so only people whom the server trusts may give it addresses.

apprise answers yes or no. Its no means either that the receiver refused, or that the receiver took
the message and never answered. So a no counts as unknown, and the message is not sent again.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import Any

from livewell.alerts.channel import Channel
from livewell.alerts.delivery_verdict import Verdict, failed
from livewell.alerts.message import Message
from livewell.errors import CallFailed, PermitLate
from livewell.outbound import Outbound

_SEND_SECONDS = (
    20.0  # apprise's own timeouts are 4 s to connect and 4 s to read; this is for a thread that hangs all the same
)


async def send_by_apprise(
    channel: Channel, message: Message, outbound: Outbound, still_ours: Callable[[], None]
) -> Verdict:
    """One message, in a thread of its own."""
    try:
        plugin = await asyncio.to_thread(_plugin, channel.address.get_secret_value())
    except ImportError:
        return Verdict(
            "refused", "apprise is not installed; install it with: pip install 'livewell[apprise]'", again=True
        )
    if not plugin:
        return Verdict("refused", "apprise does not know this kind of address")
    try:
        host = getattr(plugin, "host", None)
        if isinstance(host, str) and host:
            await outbound.check_host(host)
        still_ours()
    except CallFailed as error:
        return failed(error)
    except PermitLate:
        return Verdict("refused", "the sender was held up, and nothing was sent", again=True)
    return await _notify(plugin, message)


def _plugin(address: str) -> Any:
    """What speaks to this address; None where apprise knows nobody.

    The first time it reads a hundred plugins, which takes a while.
    """
    library = importlib.import_module("apprise")
    logging.getLogger("apprise").disabled = True  # it logs addresses
    return library.Apprise.instantiate(address, suppress_exceptions=True)


async def _notify(plugin: Any, message: Message) -> Verdict:
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            accepted = await asyncio.to_thread(plugin.notify, title=message.title, body=message.text)
    except TimeoutError:
        return Verdict("unknown", "no answer came in time")
    except (OSError, TypeError, ValueError) as error:  # what its plugins raise
        return Verdict("unknown", f"apprise failed: {type(error).__name__}")
    return Verdict("sent", "accepted") if accepted else Verdict("unknown", "apprise says that it did not succeed")
