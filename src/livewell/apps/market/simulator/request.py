"""What FMP reads out of a request, without the secret that it was asked with."""

import hashlib
from functools import lru_cache
from typing import NamedTuple

from livewell.testing.http import Request

__all__ = ["ApiRequest", "credential_name", "read"]

CALL_ID_CHARS_MAX = 2_000


class ApiRequest(NamedTuple):
    """What was asked, and the name of the credential."""

    method: str
    path: str
    query: dict[str, str]
    credential: str
    gzip: bool
    keep_alive: bool
    call_id: str
    if_none_match: str


@lru_cache(maxsize=1_000)
def credential_name(secret: str) -> str:
    """Name a credential by a short hash; of none, by nothing."""
    return "#" + hashlib.sha256(secret.encode()).hexdigest()[:12] if secret else ""


def read(request: Request) -> ApiRequest:
    """Read a request; the key comes as a header or in the query, and leaves the query here."""
    query, headers = request.query, request.headers
    shown = query.pop("apikey", "")
    return ApiRequest(
        request.method,
        request.path,
        query,
        credential_name(headers.get("apikey") or shown),
        "gzip" in headers.get("accept-encoding", ""),
        request.keep_alive,
        headers.get("x-livewell-call", "")[:CALL_ID_CHARS_MAX],
        headers.get("if-none-match", ""),
    )
