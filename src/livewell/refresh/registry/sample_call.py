"""Make one call for a sample, by hand but under the upstream's limits.

The permit, the bytes and the credential are the same as a worker's.

asked ──permit──▶ called ──bytes booked──▶ the answer, or the reason why there is none
  └──no permit now──▶ what stands in the way, and for how long
"""

from __future__ import annotations

import time

from livewell.db import Database
from livewell.errors import CallFailed, LivewellError, PermitLate
from livewell.outbound import Outbound
from livewell.refresh.definition.credentials import Credentials, secrets_for
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.request import Request, with_credential
from livewell.refresh.registry.sample_record import Fetched


async def fetch_sample(
    database: Database, request: Request, definition: TypeDefinition, upstream: UpstreamDefinition
) -> Fetched:
    """Make one call by hand, with an HTTP client of its own: `livewell types sample`."""
    async with Outbound.from_settings(database.settings) as outbound:
        return await Sampler(database, outbound).fetch(request, definition, upstream)


class Sampler:
    """Asks an upstream once."""

    def __init__(self, database: Database, outbound: Outbound) -> None:
        self._database = database
        self._outbound = outbound

    async def fetch(self, request: Request, definition: TypeDefinition, upstream: UpstreamDefinition) -> Fetched:
        """The answer to one request; any status but 200 is an error that says what was answered."""
        sent = time.monotonic()
        [(credential, fence, permit_seconds, wait_seconds, reason)] = await self._database.call(
            "SELECT * FROM livewell.take_call(%s)", (upstream.name,)
        )
        if fence is None:
            until = f" for {wait_seconds:.0f} s" if wait_seconds else ""
            raise LivewellError(f"{upstream.name}: no call may be made now{until}: {reason}")
        secret = Credentials(self._database.settings).read(credential) if credential else None
        if credential and not secret:
            raise LivewellError(f"{upstream.name}: environment variable {credential} is not set, or may not be used")
        headers, query = with_credential(upstream, secret)

        def spend() -> None:
            if permit_seconds is not None and time.monotonic() > sent + permit_seconds:
                raise PermitLate(f"{upstream.name}: the permit to call was not used in time; ask again")

        used = 0
        try:
            answer = await self._outbound.get(
                request.url,
                headers={**request.headers, **headers},
                query=query or None,
                body_bytes_max=definition.fetch.body_bytes_max,
                before_write=spend,
            )
            used = max(answer.wire_bytes, answer.decoded_bytes)
        except CallFailed as error:
            used = error.wire_bytes
            raise LivewellError(f"{upstream.name}: {error.reason}: {error.detail}") from None
        finally:
            await self._database.call(
                "SELECT livewell.book_call(%s, %s, %s, %s)", (upstream.name, credential, fence, used)
            )
        if answer.status != 200:
            said = secrets_for(upstream).hide(answer.body[:2048].decode(errors="replace"), 200)
            raise LivewellError(f"{upstream.name}: it answered {answer.status}: {said!r}")
        return Fetched(answer.body, answer.headers.get("content-type"))
