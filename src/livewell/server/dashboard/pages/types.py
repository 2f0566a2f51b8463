"""What is stale, and why? Types, one type, one key; refresh now, a TTL of one's own, pause."""

from __future__ import annotations

from dataclasses import asdict
from urllib.parse import quote

from livewell.errors import UnknownType
from livewell.refresh.nudges import DUE
from livewell.refresh.registry.admin import TypeAdmin
from livewell.refresh.why import why_key
from livewell.server.answers.problems import not_found
from livewell.server.dashboard.pages.overview import of_sample, with_shares
from livewell.server.dashboard.visit import Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts


async def types(visit: Visit) -> list[Panel]:
    """All types."""

    async def load() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = [with_shares(one) for one in parts(sample.document, "refresh", "types")]
        found.sort(key=lambda one: (one["fresh_share"] is None, one["fresh_share"] or 0))
        return of_sample(sample, "refresh", types=found, is_empty=not found)

    return [
        Panel(
            "types",
            "Types, the least fresh first",
            "types.html",
            load,
            "No type is applied yet: livewell types apply FILE",
        )
    ]


async def one_type(visit: Visit) -> list[Panel]:
    """One type: its definition, keys by verdict, and a look at one key."""
    name = visit.parts["name"]

    async def load() -> Loaded:
        record = await TypeAdmin(visit.database).type(name)
        sample = await visit.state.looks.sampler.look()
        found = next(
            (with_shares(one) for one in parts(sample.document, "refresh", "types") if one["name"] == name), None
        )
        return loaded(type=record, state=found, name=name)

    async def look() -> Loaded:
        return loaded(name=name)

    await TypeAdmin(visit.database).type(name)
    return [
        Panel("type", f"The type {name}", "type.html", load),
        Panel("look", "Look at a key", "type_look.html", look),
    ]


async def look(visit: Visit) -> Elsewhere:
    """A key that somebody typed."""
    key = visit.asked("key") or ""
    return Elsewhere(f"/types/{quote(visit.parts['name'])}/{quote(key, safe='')}")


async def one_key(visit: Visit) -> list[Panel]:
    """One key: why it is as it is, in words, and its times."""
    name, key = visit.parts["name"], visit.parts["key"]
    if "\x00" in key:
        raise not_found()

    async def load() -> Loaded:
        found = await why_key(visit.database, name, key)
        ttl = await TypeAdmin(visit.database).ttl(name, key)
        return loaded(
            why=found,
            words=found.operator_words if visit.may_operate else found.words,
            facts=asdict(found),
            ttl=ttl,
            name=name,
            key=key,
        )

    await TypeAdmin(visit.database).type(name)
    return [Panel("key", f"{name} {key}", "key.html", load)]


async def pause(visit: Visit) -> Done:
    """Fetch nothing of this type, until it is resumed."""
    return await _pause(visit, paused=True)


async def resume(visit: Visit) -> Done:
    """Fetch it again."""
    return await _pause(visit, paused=False)


async def set_ttl(visit: Visit) -> Done:
    """Give one key a TTL of its own; an empty field takes it away."""
    name, key = visit.parts["name"], visit.parts["key"]
    wish = visit.form.get("ttl", "").strip()
    admin = TypeAdmin(visit.state.pools.operate)
    if wish:
        seconds = await admin.set_ttl(name, key, wish)
        said = f"{name} {key} is fresh for {seconds:g} s now."
    else:
        said = f"{name} {key} has the TTL of its type{' again' if await admin.clear_ttl(name, key) else ', as before'}."
    visit.state.nudger.nudge(DUE)
    return Done(said, f"/types/{quote(name)}/{quote(key, safe='')}")


async def refresh(visit: Visit) -> Done:
    """Fetch one key now, if the limits allow."""
    name, key = visit.parts["name"], visit.parts["key"]
    if not (name.isidentifier() and name.isascii()):
        raise UnknownType(f'type "{name[:48]}" is not in the registry')
    found = await visit.state.reads.read(name, key, max_age=0, wait=0, user=visit.caller.user)
    said = f"A refresh of {name} {key} is asked for."
    if found.demand == "cold_budget":
        said = "Too many keys that nobody asked for before: wait a minute."
    elif found.throttled:
        said = f"{name} {key} cannot be fetched now: {found.throttled}."
    return Done(said, f"/types/{quote(name)}/{quote(key, safe='')}")


async def _pause(visit: Visit, *, paused: bool) -> Done:
    name = visit.parts["name"]
    await TypeAdmin(visit.state.pools.operate).pause(name, paused=paused)
    visit.state.nudger.nudge(DUE)
    return Done(f"{name} is {'paused' if paused else 'fetched again'}.", f"/types/{quote(name)}")
