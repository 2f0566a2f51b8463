"""The relay: takes committed events to one sink, in order for each key, and proves that it did.

relays.py      all relays of a process, each kept alive
relay.py       one sink: claim, send, finish, in one loop
lease.py       a relay's lease: registered, renewed, given back
sending.py     one batch at the sink, and what its errors mean
in_flight.py   what is on its way, and what became of it
batch_size.py  how many events at once
pace.py        how many of them a sink with a rate may be sent now
"""

from livewell.outbox.relay.relays import Relays

__all__ = ["Relays"]
