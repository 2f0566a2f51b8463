"""Where did this event go? What it is, and for each sink how far it is and what stands in its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from livewell.server.dashboard.pages.outbox import admin
from livewell.server.dashboard.pages.payload import has_secrets, masked
from livewell.server.dashboard.visit import Loaded, Panel, Visit, loaded

_TONES = {
    "delivered": "fresh",
    "in_flight": "fresh",
    "waiting": "none",
    "draining": "none",
    "not_routed": "none",
    "not_recorded": "none",
    "free_shard": "warn",
    "behind": "warn",
    "failed": "warn",
    "paused": "warn",
}
_STATES = {
    "not_routed": "not for it",
    "not_recorded": "not recorded",
    "in_flight": "on its way",
    "failed": "tried again",
    "no_relay": "no relay",
    "free_shard": "no relay yet",
    "nobody_claims": "nobody claims",
    "behind": "waits behind another",
    "draining": "goes now",
}


async def panels(visit: Visit) -> list[Panel]:
    """The event, each sink, the payload."""
    given = visit.parts["id"]
    event = await admin(visit).event(given)

    async def what() -> Loaded:
        return loaded(event={name: value for name, value in event.items() if name not in ("payload", "sinks")})

    async def where() -> Loaded:
        behind = {one["sink"]: one["behind"] for one in event["sinks"]}
        rows = [{**told(one), "behind": behind.get(one["sink"])} for one in await admin(visit).why(given)]
        return loaded(sinks=rows, number=event["number"], is_empty=not rows)

    async def payload() -> Loaded:
        return loaded(payload=masked(event["payload"]), has_secrets=has_secrets(event["payload"]), to="")

    return [
        Panel("where", "At each sink", "outbox_where.html", where, "No sink is declared: it goes nowhere."),
        Panel("event", f"Event {event['id']}", "outbox_event.html", what, wide=False),
        Panel("payload", "Payload", "outbox_payload.html", payload, wide=False),
    ]


def told(one: Mapping[str, Any]) -> dict[str, Any]:
    """A sink with words for its state. What a sink said is in operator_words: withheld from others."""
    code = one["code"]
    return {
        "sink": one["sink"],
        "code": code,
        "tone": _TONES.get(code, "bad"),
        "state": _STATES.get(code, code.replace("_", " ")),
        "operator_words": one["words"],
        "next": one["next"],
    }
