"""A TCP proxy that breaks connections.

Stand it in front of Postgres (or any server) and choose what goes wrong.

    client ◀──▶ proxy.port ══ flow up ═══▶ target
                           ◀═ flow down ══

    heal ──delay, throttle, freeze──▶ held up     ──heal (freeze: also thaw)──▶ heal
    heal ──cut, reset, reset_after──▶ broken      (the client has to connect again)
    heal ──refuse──▶ nobody listens               ──accept, heal──▶ heal

Each direction of each connection is a reader, a bounded buffer and a deliverer. End of stream and
reset travel through the same buffer as the bytes, so a frozen proxy hides the death of a peer
exactly as a half-open network does (T11). A verb is a plain method and is in force when it returns;
what it did is counted when it strikes, not when it is called, so that a test can demand that its
fault fired.

proxy      TcpProxy: the listening port, the connections, the verbs
faults     the policy in force, how long bytes wait for it, and what struck
flow       one connection, its two directions, and a bounded buffer for each
threaded   ThreadedProxy: the same in a thread and a loop of its own
"""

from livewell.testing.proxy.faults import ProxyCounts, ProxyError, Verb
from livewell.testing.proxy.proxy import TcpProxy
from livewell.testing.proxy.threaded import ThreadedProxy

__all__ = ["ProxyCounts", "ProxyError", "TcpProxy", "ThreadedProxy", "Verb"]
