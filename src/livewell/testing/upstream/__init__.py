"""A third-party API that misbehaves on demand, in a process of its own, with a log of its own.

    async with FakeUpstream(folder) as upstream:
        await upstream.behave(path="/quote", status=429, headers={"Retry-After": "3"}, times=1)
        …
        calls = upstream.log.read()

Read fake.py (what a test does), behaviour.py (what can go wrong), call.py (what is written down);
the server is livewell.testing.http → script → answer → delivery.
"""

from livewell.testing.upstream.behaviour import Behaviour, BehaviourRefused
from livewell.testing.upstream.call import Call, CallLog, call_id, credential_name
from livewell.testing.upstream.fake import FakeUpstream, UpstreamFailed

__all__ = [
    "Behaviour",
    "BehaviourRefused",
    "Call",
    "CallLog",
    "FakeUpstream",
    "UpstreamFailed",
    "call_id",
    "credential_name",
]
