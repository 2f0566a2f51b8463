"""The app of worker processes that call an upstream under limits.

Run by `livewell worker tests.faults.limited_app:app`.

The environment says which upstream (LIVEWELL_TEST_UPSTREAM_PORT) and which limits
(LIVEWELL_TEST_LIMITERS: JSON, queue → arguments of app.limiter), so that the process that enqueues
and those that work declare the same. Every run appends the lines of fleet_app to LIVEWELL_TEST_LOG,
and, with its fence instead of its key:

    sent       the permit was checked, at this instant, and the request written    heard     the answer is here, and its bytes are counted

The judge is the upstream's own log.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from livewell import Backoff, Blame, Breaker, Job, Lane, Livewell, Retry
from livewell.testing.upstream import call_id
from tests.faults.fleet_app import note, noted

UPSTREAM = "LIVEWELL_TEST_UPSTREAM_PORT"
LIMITERS = "LIVEWELL_TEST_LIMITERS"
CALL_SECONDS_MAX = 60.0
NICE = 5


def make_app(limiters: Mapping[str, Mapping[str, Any]]) -> Livewell:
    """Make an app with a queue and a limiter of the same name for each entry.

    Each limiter has the credential fake-name (which is no secret); its task is call_name.
    """
    made = Livewell()
    for name, limits in limiters.items():
        breaker = Breaker(**limits["breaker"]) if "breaker" in limits else None
        made.limiter(name, **{**limits, "breaker": breaker}, credentials=[f"fake-{name}"])
        made.queue(name, limiter=name, attempts=100, backoff=Backoff(0.05, 0.2))
        made.task(queue=name, name=f"call_{name}", timeout=120, lane=Lane.PEOPLE)(call)
    return made


async def call(job: Job, key: int, linger_seconds: float = 0.0) -> None:
    """Make one call to the upstream, say what it cost, and linger.

    The answer is here, the result not yet handed in.
    """
    with noted(key):
        status, size = await _fetch(job, key)
        job.used(size)
        note("heard", job.claimed.fence)
        if linger_seconds:
            await _linger(linger_seconds)
        if status >= 500:
            raise Retry(f"the upstream answered {status}", after=0.1, blame=Blame.UPSTREAM)


async def _fetch(job: Job, key: int) -> tuple[int, int]:
    """One request on a connection of its own, the permit checked on the connected socket.

    Answers the status and all bytes that came.
    """
    request = (
        f"GET /quote?symbol=K{key} HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {job.credential}\r\n"
        f"X-Livewell-Call: {call_id((job.id, job.claimed.fence))}\r\n\r\n"
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ[UPSTREAM]))
    try:
        job.spend_permit()
        checked = time.monotonic()
        writer.write(request)
        note("sent", job.claimed.fence, checked)
        async with asyncio.timeout(CALL_SECONDS_MAX):
            answer = await reader.read()
    finally:
        writer.close()
    if not answer:
        raise Retry("the upstream hung up", after=0.1, blame=Blame.UPSTREAM)
    return int(answer.split(b" ", 2)[1]), len(answer)


async def _linger(seconds: float) -> None:
    """Wait, deaf to cancellation: a worker that was buried meanwhile still has something to say."""
    lingering = asyncio.create_task(asyncio.sleep(seconds))
    while not lingering.done():
        try:
            await asyncio.shield(lingering)
        except asyncio.CancelledError:
            continue


if UPSTREAM in os.environ:
    os.nice(NICE)  # we are a worker: on two cores, twenty of us would keep the upstream from stamping what has arrived
app = make_app(json.loads(os.environ.get(LIMITERS, "{}")))
