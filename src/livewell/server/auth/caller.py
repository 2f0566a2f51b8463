"""Who is calling: an API key or a token in the Authorization header, or a browser's login cookie.

    Authorization: Bearer lw_…   ──▶ the key's user; a public key: somebody anonymous
    Authorization: Bearer eyJ…   ──▶ jwt:<issuer>:<sub>
    Cookie: livewell=lw_…        ──▶ the login's user; what changes something must come from our own page

The header wins: a page of another origin that sends a key is never mistaken for the person at the
browser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from starlette.datastructures import Headers

from livewell.server.answers.problems import Problem, unknown_caller
from livewell.server.auth.api_keys import Key, Keys, split
from livewell.server.auth.web_tokens import Tokens
from livewell.server.connection.network import network

COOKIE = "livewell"
_SAFE = ("GET", "HEAD", "OPTIONS")
_COOKIES_CHARS_MAX = 4096
_COOKIE = re.compile(rf"(?:^|; ?){COOKIE}=([A-Za-z0-9_-]{{1,200}})(?=;|$)")

_WRONG = "The key or token is unknown, wrong, revoked or expired."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, and what they may do.

    user None: somebody anonymous, known by their session alone.
    """

    user: str | None
    client: str  # for whom requests are counted
    kind: Literal["key", "public", "login", "jwt"]
    scopes: frozenset[str]
    types: frozenset[str] | None = None  # that may be read; None: all
    key_id: str | None = None
    token: str | None = field(default=None, repr=False)  # to be verified again
    origin: str | None = None  # of somebody anonymous: public:<key>@<network>

    def may(self, scope: str) -> bool:
        """Whether the scope is among theirs."""
        return scope in self.scopes

    def may_read(self, data_type: str) -> bool:
        """Whether they may see a type's values."""
        return self.types is None or data_type in self.types


class Auth:
    """Keys and tokens of one server."""

    def __init__(self, keys: Keys, tokens: Tokens) -> None:
        self.keys = keys
        self._tokens = tokens

    async def caller(self, headers: Headers, method: str, address: str) -> Caller:
        """Find out, or raise the problem that says so."""
        given = headers.getlist("authorization")
        if given:
            if len(given) > 1:
                raise unknown_caller("More than one Authorization header.")
            return await self._by_header(given[0], address)
        cookie = cookie_of(headers)
        if cookie is None:
            raise unknown_caller()
        _same_origin(headers, method)
        key = await self.keys.check(cookie)
        if key is None or key.kind != "login":
            raise unknown_caller("The login has ended. Open a new link: livewell keys login")
        return _by_key(key, address)

    async def renew(self, caller: Caller) -> Caller | None:
        """The same caller as of now, for streams; None when they may not come in any more."""
        if caller.token is not None:
            token = self._tokens.check(caller.token)
            return None if token is None else replace(caller, scopes=token.scopes)
        key = await self.keys.find(caller.key_id or "")
        return None if key is None else replace(caller, scopes=key.scopes, types=key.types)

    def asks_database(self, headers: Headers) -> bool:
        """Whether it costs a query to find out who this is.

        Not for tokens, nor for keys that were good a moment ago, nor for what is no key at all.
        """
        text = headers.get("authorization", "").partition(" ")[2].strip() or cookie_of(headers) or ""
        return split(text) is not None and not self.keys.remembers(text)

    async def _by_header(self, value: str, address: str) -> Caller:
        scheme, _, text = value.partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not text:
            raise unknown_caller()
        if text.startswith("lw_"):
            key = await self.keys.check(text)
            if key is None or key.kind != "key":
                raise unknown_caller(_WRONG)
            return _by_key(key, address)
        token = self._tokens.check(text)
        if token is None:
            raise unknown_caller(_WRONG)
        return Caller(user=token.user, client=token.user, kind="jwt", scopes=token.scopes, token=text)


def cookie_of(headers: Headers) -> str | None:
    """The value of our cookie, if there is one.

    Read by hand: the standard library unquotes values in quadratic time, and ours are never quoted.
    """
    text = headers.get("cookie", "")
    if len(text) > _COOKIES_CHARS_MAX:
        return None
    found = _COOKIE.search(text)
    return found[1] if found else None


def _same_origin(headers: Headers, method: str) -> None:
    """A cookie comes along whoever sends the request.

    What changes something must come from a page of ours (CSRF).
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site in ("cross-site", "same-site"):
        raise Problem(403, "A login works on our own pages only.", word="cross-site")
    if method in _SAFE:
        return
    if site == "same-origin":
        return
    host = headers.get("host", "")
    if origin is None or not host or origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        raise Problem(403, "A login works on our own pages only.", word="cross-site")


def _by_key(key: Key, address: str) -> Caller:
    kind: Literal["key", "public", "login"] = "login" if key.kind == "login" else "public" if key.public else "key"
    return Caller(
        user=None if key.public else f"key:{key.id}",
        client=f"key:{key.id}@{network(address)}" if key.public else f"key:{key.id}",
        kind=kind,
        scopes=key.scopes,
        types=key.types,
        key_id=key.id,
        origin=f"public:{key.id}@{network(address)}" if key.public else None,
    )
