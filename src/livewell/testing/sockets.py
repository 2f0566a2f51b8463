"""How a socket ends with a reset."""

import socket
import struct

__all__ = ["reset_on_close"]

_LINGER_ZERO = struct.pack("ii", 1, 0)


def reset_on_close(connection: socket.socket) -> None:
    """Let the next close() send RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
