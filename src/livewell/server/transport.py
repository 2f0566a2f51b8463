"""The connection below a stream: how much may wait in it, and how to end it when its client takes nothing.

An answer that is merely given up leaves its bytes with the transport, which waits for ever to be rid of them. Whoever does not read is cut off.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import cast

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

_KERNEL_BYTES = 65_536  # the kernel doubles it; without a bound it keeps megabytes for a client that never reads
_NAME = "transport"


class Protocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it; routes find their connection in the scope's state."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """A client is there."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, _NAME: transport}


def narrow(scope: Scope) -> None:
    """Let little wait in the kernel: what is not taken shall be noticed, and the latest state replaces what waits with us."""
    transport = _transport(scope)
    if transport is not None:
        _set(transport, socket.SO_SNDBUF, _KERNEL_BYTES)


def cut(scope: Scope) -> None:
    """End the connection at once; what was not taken is thrown away, by the kernel too."""
    transport = _transport(scope)
    if transport is not None:
        _set(transport, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


def _set(transport: asyncio.Transport, option: int, value: int | bytes) -> None:
    """On a duplicate: the loop's own socket has no such method everywhere."""
    try:
        duplicate = os.dup(transport.get_extra_info("socket").fileno())
    except (OSError, AttributeError):
        return  # it has just gone
    with socket.socket(fileno=duplicate) as end:
        try:
            end.setsockopt(socket.SOL_SOCKET, option, value)
        except OSError:
            return  # the same


def _transport(scope: Scope) -> asyncio.Transport | None:
    return cast("asyncio.Transport | None", scope.get("state", {}).get(_NAME))
