"""Forms: the token that shows that a form is ours, and what is said after an act.

    page ──cookie livewell-form: random──▶ browser ──POST: cookie and a field made from it──▶ checked

Another site can make a browser send a form, but it can read neither the cookie nor our page, so it
cannot make the field. The gate has also checked that a login comes from our own pages.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from livewell.server.answers.problems import Problem

TOKEN_COOKIE = "livewell-form"  # noqa: S105 - its name
SAID_COOKIE = "livewell-said"
FIELDS_MAX = 50
_SAID_CHARS_MAX = 500
_SAID_SECONDS = 30
_TEXT = r"([A-Za-z0-9_-]{1,3000})"


def new_secret() -> str:
    """For the cookie."""
    return secrets.token_urlsafe(24)


def token(secret: str) -> str:
    """The field of a form that belongs to a cookie."""
    return hashlib.sha256(b"livewell form\0" + secret.encode()).hexdigest()[:40]


def cookie(request: Request, name: str) -> str | None:
    """One of our cookies; read by hand, as the login is (auth/caller.py)."""
    text = request.headers.get("cookie", "")
    found = re.search(rf"(?:^|; ?){name}={_TEXT}(?=;|$)", text) if len(text) <= 4096 else None
    return found[1] if found else None


def keep(response: Response, request: Request, name: str, value: str, seconds: int | None = None) -> None:
    """Set one of our cookies."""
    secure = request.url.scheme == "https"
    response.set_cookie(name, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")


async def read(request: Request) -> tuple[Mapping[str, str], Mapping[str, Sequence[str]]]:
    """The fields of a form, if it is ours: the last of each name, and all of each name."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Problem(400, "Send a form.", word="invalid", field="body")
    try:
        text = (await request.body()).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise Problem(400, "The form cannot be read.", word="invalid", field="body") from None
    fields = dict(pairs)
    secret = cookie(request, TOKEN_COOKIE)
    if secret is None or not hmac.compare_digest(token(secret), fields.pop("token", "")):
        raise Problem(403, "This form is not from this page, or too old. Load the page again.", word="form")
    return fields, {name: [value for one, value in pairs if one == name] for name in fields}


def say(response: Response, request: Request, text: str) -> None:
    """Let the next page say it."""
    encoded = base64.urlsafe_b64encode(text[:_SAID_CHARS_MAX].encode()).decode().rstrip("=")
    keep(response, request, SAID_COOKIE, encoded, _SAID_SECONDS)


def said(request: Request) -> str | None:
    """What an act left to say."""
    encoded = cookie(request, SAID_COOKIE)
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode() if encoded else None
    except ValueError:
        return None
