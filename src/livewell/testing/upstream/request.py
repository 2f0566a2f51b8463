"""What an upstream reads out of a request: the keys asked for, and the credential's name."""

from livewell.testing.http import Request
from livewell.testing.upstream.call import credential_name

__all__ = ["credential_of", "keys_of"]


def keys_of(request: Request) -> tuple[str, ...]:
    """Give the keys asked: symbol=A or key=A is one, symbols=A,B or keys=A,B are many."""
    query = request.query
    for name in ("symbols", "keys"):
        if name in query:
            return tuple(key for key in query[name].split(",") if key)
    return tuple(query[name] for name in ("symbol", "key") if name in query)


def credential_of(request: Request) -> str:
    """Name the credential shown by Authorization, an apikey header, or apikey in the query; "" for
    none.
    """
    headers = request.headers
    shown = headers.get("authorization", "").removeprefix("Bearer ")
    shown = shown or headers.get("apikey", "") or headers.get("x-api-key", "")
    return credential_name(shown or request.query.get("apikey", ""))
