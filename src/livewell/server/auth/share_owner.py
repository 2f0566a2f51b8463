"""The client for whom shares of streams, keys and waits are counted.

It is the user. For an anonymous caller it is the public key and the network (IPv6: the /64),
however many sessions and addresses the caller has there.
"""

from __future__ import annotations

from livewell.server.auth.caller import Caller
from livewell.shares import Client


def client_of(caller: Caller) -> Client:
    """The caller as shares know it."""
    return Client(caller.origin or caller.client, stranger=caller.user is None)
