"""What these tests share: the bound they give, the hosts they may call, and a call that must fail."""

import pytest

from livewell.errors import CallFailed
from livewell.outbound import Outbound, Share
from livewell.testing import Call, FakeUpstream
from livewell.testing.processes import eventually_async

BODY_BYTES_MAX = 100_000
LOCAL = ("127.0.0.1", "localhost")


def about(*subjects: str, family: str = "quote") -> Share:
    """A call that may share its connection with others of its family."""
    return Share(family, frozenset(subjects))


async def failure(outbound: Outbound, url: str, body_bytes_max: int = BODY_BYTES_MAX) -> CallFailed:
    """The failure that this call must end in."""
    with pytest.raises(CallFailed) as caught:
        await outbound.get(url, body_bytes_max=body_bytes_max)
    return caught.value


async def ended(upstream: FakeUpstream, count: int) -> list[Call]:
    """Wait until so many calls have ended.

    The client may know the answer before the log knows the end.
    """

    def calls() -> list[Call]:
        found = [call for call in upstream.log.read() if call.ending is not None]
        return found if len(found) >= count else []

    return await eventually_async(calls)
