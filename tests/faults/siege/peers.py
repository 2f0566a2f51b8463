"""Which connections the server still holds, as the kernel tells (/proc/net/tcp), for clients that do not read.

A client that takes nothing never sees the end of its connection: the server's last packet waits
behind what was not taken. So the server's side is looked at.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

LOOK_SECONDS = 0.5
ESTABLISHED = "01"
Place = tuple[str, int]


@dataclass(slots=True)
class Peers:
    """Of one server's port; looked up twice a second at most, whoever asks."""

    port: int
    _held: set[Place] = field(default_factory=set)
    _left: dict[Place, int] = field(default_factory=dict)  # the server is gone, these bytes wait in the kernel
    _looked_at: float = float("-inf")

    def holds(self, place: Place) -> bool:
        """Whether the server still has its end of the connection from there."""
        self._look()
        return place in self._held

    def left_bytes(self, place: Place) -> int:
        """What the server's kernel still keeps for a client that the server itself has given up."""
        self._look()
        return self._left.get(place, 0)

    def _look(self) -> None:
        if time.monotonic() < self._looked_at + LOOK_SECONDS:
            return
        self._held, self._left, self._looked_at = set(), {}, time.monotonic()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, state, queues, *_ = line.split()
            if int(local.partition(":")[2], 16) != self.port:
                continue
            if state == ESTABLISHED:
                self._held.add(_place(remote))
            else:
                self._left[_place(remote)] = int(queues.partition(":")[0], 16)


def _place(text: str) -> Place:
    """0200007F:A1B2 is 127.0.0.2, port 41394."""
    address, _, port = text.partition(":")
    return socket.inet_ntoa(struct.pack("=I", int(address, 16))), int(port, 16)
