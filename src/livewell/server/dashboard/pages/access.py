"""Who may do what? API keys, logins of browsers, and what an administrator does with them."""

from __future__ import annotations

from livewell.duration import seconds
from livewell.errors import InvalidOption
from livewell.server.answers.json_answer import cursor, place
from livewell.server.answers.problems import Problem
from livewell.server.auth.access import Access, read_keys, read_logins
from livewell.server.auth.login_links import log_out as end
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded

_NO_LOGIN = "Only a login by link can end itself; revoke a key on the page /access, or with: livewell keys revoke"
_LOGINS_SHOWN = 200
MEANINGS = {
    "view": "read values and types",
    "subscribe": "keep values fresh and follow them",
    "observe": "look at the dashboard, without payloads and errors",
    "operate": "see everything, pause, cancel, retry, refresh",
    "admin": "make and revoke keys, end logins",
}


async def panels(visit: Visit) -> list[Panel]:
    """Keys, logins, and the form for a new key."""
    try:
        after = place(visit.query.get("after")) or None
    except ValueError:
        raise Problem(400, "This is not a cursor of ours.", word="invalid", field="query.after") from None

    async def keys() -> Loaded:
        found = await read_keys(visit.database, after=after, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(keys=found, next=more, is_empty=not found)

    async def logins() -> Loaded:
        found = await read_logins(visit.database, limit=_LOGINS_SHOWN)
        return loaded(logins=found, most=_LOGINS_SHOWN, is_empty=not found)

    async def form() -> Loaded:
        # mint_key gives no scope that the caller lacks.
        return loaded(scopes=[one for one in MEANINGS.items() if one[0] != "operate" or visit.may_operate])

    shown = [
        Panel("keys", "API keys", "access_keys.html", keys, "There are no keys yet: livewell keys create NAME"),
        Panel("logins", "Logins of browsers", "access_logins.html", logins, "Nobody is logged in by a link."),
    ]
    return [*shown, Panel("create", "Make a key", "access_form.html", form)] if visit.rights.admin else shown


async def create(visit: Visit) -> Done:
    """Make a key; its text is shown once."""
    name, expires = visit.form.get("name", "").strip(), visit.form.get("expires", "").strip()
    types = visit.form.get("types", "").replace(",", " ").split()
    made = await _access(visit).create(
        name,
        scopes=visit.chosen.get("scope", ()),
        types=types,
        public="public" in visit.form,
        seconds=seconds(expires, "expires") if expires else None,
    )
    return Done(f"The key {made.id} ({name}) is made. Send it as: Authorization: Bearer …", "/access", made.text)


async def revoke(visit: Visit) -> Done:
    """Refuse one key, link or login from now on."""
    return await _withdraw(visit, "revoked")


async def end_login(visit: Visit) -> Done:
    """End the login of one browser."""
    return await _withdraw(visit, "ended")


async def end_logins(visit: Visit) -> Done:
    """Log every browser out, this one too."""
    n = await _access(visit).end_logins()
    said = f"{n:,} login{'s' * (n != 1)} ended: every browser is logged out."
    is_login = visit.caller.kind == "login"
    return Done(said, "/login" if is_login else "/access", logged_out=is_login)


async def log_out(visit: Visit) -> Done:
    """End the login of this browser."""
    caller, state = visit.caller, visit.state
    if caller.kind != "login" or caller.key_id is None:
        raise Problem(403, _NO_LOGIN, word="no-login")
    await end(state.pools.api, caller.key_id)
    state.auth.keys.forget(caller.key_id)
    return Done("You are logged out.", "/login", logged_out=True)


async def _withdraw(visit: Visit, word: str) -> Done:
    one = visit.parts["id"]
    if not (one.isascii() and one.isalnum() and len(one) <= 32):
        raise InvalidOption(f"id {one[:40]!r}: the id of a key or login is allowed")
    n = await _access(visit).withdraw([one])
    said = f"{one} is {word}." if n else f"{one} could not be used any more: nothing was done."
    is_own = one == visit.caller.key_id and visit.caller.kind == "login"
    slow = f" Other servers refuse it within {visit.state.settings.key_cache_seconds:g} s." if n else ""
    return Done(said + slow, "/login" if is_own else "/access", logged_out=is_own)


def _access(visit: Visit) -> Access:
    return Access(visit.state.pools.operate, visit.state.auth.keys, visit.caller)
