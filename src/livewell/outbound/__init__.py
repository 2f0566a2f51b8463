"""The only HTTP client: address guard, bounded body, deadline, byte count, wall classifier.

client.py       one call: get and post
target.py       where it goes: a URL read strictly, a host that was named
guard.py        look the name up once, check every address, dial no other
address.py      what kind of place an IP address is
exchange.py     the socket: count bytes, ask before the request leaves, send it once
decoding.py     undo Content-Encoding, within two caps
depth.py        how deep JSON is nested, before a parser is asked
answer.py       what the upstream answered
wall.py         what the upstream means by its refusal
retry_after.py  Retry-After: seconds, a date, or nonsense
failure.py      a failed call in words, without a secret
"""

from livewell.outbound.answer import Answer
from livewell.outbound.client import Outbound
from livewell.outbound.depth import too_deep
from livewell.outbound.exchange import Share
from livewell.outbound.wall import Wall, classify

__all__ = ["Answer", "Outbound", "Share", "Wall", "classify", "too_deep"]
