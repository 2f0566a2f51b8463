"""The one call that `livewell types sample` makes, through the same HTTP client as every refresh. A person asked for it: it waits for no permit, and no budget is charged."""

from __future__ import annotations

import os

from pydantic import SecretStr

from livewell.errors import ConfigurationError, LivewellError
from livewell.outbound import Outbound
from livewell.refresh.definition import TypeDefinition, UpstreamDefinition
from livewell.refresh.record import Fetched
from livewell.refresh.request import Request


async def call(
    outbound: Outbound, request: Request, definition: TypeDefinition, upstream: UpstreamDefinition
) -> Fetched:
    """The answer, with the first credential that is set; any status but 200 raises."""
    headers: dict[str, str | SecretStr] = dict(request.headers)
    query: dict[str, SecretStr] | None = None
    place, _, name = (upstream.credential_in or "").partition(":")
    if place:
        secret = next((os.environ[one] for one in upstream.credentials if os.environ.get(one)), None)
        if secret is None:
            raise ConfigurationError(f"environment variable {' or '.join(upstream.credentials)} is not set")
        if place == "header":
            headers[name] = SecretStr(secret)
        else:
            query = {name: SecretStr(secret)}
    async with outbound:
        answer = await outbound.get(
            request.url, headers=headers, query=query, body_bytes_max=definition.fetch.body_bytes_max
        )
    if answer.status != 200:
        raise LivewellError(
            f"{definition.name}: {upstream.name} answered with status {answer.status}, nothing to record"
        )
    return Fetched(answer.body, answer.headers.get("content-type"))
