"""Login links: a person at the browser shows that they can read this machine's terminal.

link made (owner) ──printed──▶ opened in a browser ──POST of its token──▶ used up; the browser has a login in a cookie ──logout, or time──▶ ended

The token is in the fragment of the address, so it is in no log and no Referer; the link works once,
and only for a while.
"""

from __future__ import annotations

from livewell.db import Database
from livewell.db.acts import actor, audited, line, located, origin
from livewell.server.auth.api_keys import NewKey, hash_of, split
from livewell.server.auth.web_tokens import SCOPES
from livewell.settings import Settings

_CREATE = audited("livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)")
_REDEEM = located("livewell.redeem_link(%s, %s, %s, %s, %s)")
_END = located("livewell.end_login(%s)")
_NAME_CHARS_MAX = 100


async def make_link(database: Database, settings: Settings, *, person: str | None = None) -> str:
    """A token for one login with every scope; the caller must be the owner.

    person: at whose terminal it is printed, if that is not the actor; see owner.py.
    """
    link = NewKey.make()
    name = f"login link of {person or actor()}"[
        :_NAME_CHARS_MAX
    ]  # and of the login: in the audit it says whose link it was
    row = (link.id, link.hash, "link", name, list(SCOPES), None, False, settings.link_seconds)
    await database.call(_CREATE, (*row, *line("logins.link", link.id, after={"scopes": list(SCOPES)}, name=name)))
    return link.text


def link_address(base: str, token: str) -> str:
    """What is printed."""
    return f"{base}/login#{token}"


async def redeem(database: Database, token: str, settings: Settings) -> str | None:
    """Use a link up: the text of the login for the cookie, or None when the link is not good."""
    parts = split(token)
    if parts is None:
        return None
    login = NewKey.make()
    [(good,)] = await database.call(
        _REDEEM,
        (origin(), parts[0], hash_of(parts[1]), login.id, login.hash, settings.login_seconds),
    )
    return login.text if good else None


async def log_out(database: Database, login_id: str) -> None:
    """End a login that its holder has just shown."""
    await database.call(_END, (origin(), login_id))
