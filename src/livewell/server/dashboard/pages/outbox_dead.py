"""What did a sink not take in the end? Dead letters by group and one by one: redrive, discard."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from livewell.errors import EventNotFound
from livewell.outbox.admin import REASONS, OutboxAdmin
from livewell.server.answers.json_answer import cursor, place
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.pages.outbox import acting, admin
from livewell.server.dashboard.pages.outbox_sink import with_filter
from livewell.server.dashboard.pages.payload import has_secrets, masked, record_reveal
from livewell.server.dashboard.visit import PAGE_ROWS, Answer, Done, Loaded, Panel, Visit, loaded
from livewell.telemetry.logs import hide
from livewell.words import number

_PAGES_MAX = 50  # of a hundred letters, in one act on a group
_EXPLAINED = {
    "attempts": "It failed in each of its attempts.",
    "refused": "The sink said that it will never take it: too large, or malformed.",
    "lost": "Five relays ended while they delivered it.",
}
_NEXT = {
    "attempts": "Mend the cause at the receiver, then redrive it.",
    "refused": "Redriving it as it is fails again, unless the receiver or its limits have changed.",
    "lost": "It may have ended its relays (memory, a crash): see them before it is redriven.",
}
_NAMES = ("sink", "topic", "reason")


async def panels(visit: Visit) -> list[Panel]:
    """The filter, the groups, and the letters."""
    query = {name: found for name in ("sink", "topic") if (found := visit.asked(name))}
    if reason := visit.asked("reason", among=REASONS):
        query["reason"] = reason
    after = _after(visit)

    async def filters() -> Loaded:
        return loaded(query=query, reasons=REASONS)

    async def groups() -> Loaded:
        found = [one for one in await admin(visit).dead_groups() if all(one[name] == query[name] for name in query)]
        return loaded(groups=[with_filter(one) for one in found], is_empty=not found)

    async def letters() -> Loaded:
        found = await admin(visit).dead(
            sink=query.get("sink"), topic=query.get("topic"), reason=query.get("reason"), after=after, limit=PAGE_ROWS
        )
        last = found[-1] if len(found) == PAGE_ROWS else None
        more = None if last is None else cursor(f"{last['number']} {last['sink']}")
        return loaded(letters=found, next=more, query=urlencode(query), is_empty=not found)

    fine = "No event is a dead letter." if not (query or after) else "No dead letter matches."
    return [
        Panel("filters", "Which letters", "outbox_dead_filter.html", filters),
        Panel("groups", "By sink, topic and reason", "outbox_dead_groups.html", groups, fine),
        Panel("letters", "The oldest first", "outbox_dead.html", letters, fine),
    ]


async def one(visit: Visit) -> list[Panel]:
    """One letter: why, what is in it, what can be done."""
    sink, event = visit.parts["sink"], visit.number("id")
    letter = await _letter(admin(visit), sink, event)
    document = await admin(visit).event(str(event))

    async def what() -> Loaded:
        reason = letter["reason"]
        return loaded(
            one={**letter, "detail": hide(letter["detail"])},
            explained=_EXPLAINED.get(reason, ""),
            step=_NEXT.get(reason, ""),
            number=event,
            to=f"/outbox/dead/{quote(sink, safe='')}/{event}",
        )

    async def payload() -> Loaded:
        text = document["payload"]
        to = f"/outbox/dead/{quote(sink, safe='')}/{event}/reveal"
        return loaded(payload=masked(text), has_secrets=has_secrets(text), to=to)

    return [
        Panel("letter", f"Dead letter {event} of {sink}", "outbox_letter.html", what),
        Panel("payload", "Payload", "outbox_payload.html", payload),
    ]


async def redrive(visit: Visit) -> Done:
    """Deliver one letter again, in front of what waits behind it."""
    sink, event = visit.parts["sink"], visit.number("id")
    if not await acting(visit).redrive([event], sink=sink):
        raise _gone(sink, event)
    return Done(f"Event {event} goes to {sink} again, before later events of its key.", _back(visit))


async def discard(visit: Visit) -> Done:
    """Leave one event out for good."""
    sink, event = visit.parts["sink"], visit.number("id")
    if not await acting(visit).discard([event], sink=sink):
        raise _gone(sink, event)
    return Done(f"Event {event} is discarded: {sink} does not get it.", "/outbox/dead")


async def reveal(visit: Visit) -> Answer:
    """Show the payload as it is stored, secrets included; who looked is written down."""
    sink, event = visit.parts["sink"], visit.number("id")
    await _letter(acting(visit), sink, event)
    document = await acting(visit).event(str(event))
    await record_reveal(visit, "outbox.reveal", f"event {event}")

    async def payload() -> Loaded:
        return loaded(payload=document["payload"], has_secrets=False, to="")

    title = f"Payload of event {event}"
    return Answer(title, [Panel("payload", title, "outbox_payload.html", payload)])


async def redrive_group(visit: Visit) -> Done:
    """Deliver the letters of a sink, topic and reason again, 5,000 at most."""
    chosen = _chosen(visit)
    n = await acting(visit).redrive_all(**chosen, pages=_PAGES_MAX)
    return Done(f"{_events(n)} {'goes' if n == 1 else 'go'} to {chosen['sink']} again.{_rest(n)}", "/outbox/dead")


async def discard_group(visit: Visit) -> Done:
    """Leave them out for good, 5,000 at most."""
    chosen = _chosen(visit)
    n = await acting(visit).discard_all(**chosen, pages=_PAGES_MAX)
    return Done(f"{_events(n)} {'is' if n == 1 else 'are'} discarded.{_rest(n)}", "/outbox/dead")


def _events(n: int) -> str:
    return "1 event" if n == 1 else f"{number(n)} events"


def _rest(n: int) -> str:
    return " There are more: do it again, or with livewell outbox dead." if n >= _PAGES_MAX * 100 else ""


def _chosen(visit: Visit) -> dict[str, str]:
    """What makes the group, as the form says."""
    chosen = {name: visit.form.get(name, "") for name in _NAMES}
    if not all(chosen.values()) or chosen["reason"] not in REASONS:
        raise Problem(400, "The form does not say which letters: sink, topic and reason.", word="invalid")
    return chosen


async def _letter(outbox: OutboxAdmin, sink: str, event: int) -> dict[str, Any]:
    """The letter of this event and sink; raises if it is none any more."""
    found = await outbox.dead(sink=sink, after=(event, ""), limit=1)
    if not found or found[0]["number"] != event:
        raise _gone(sink, event)
    return found[0]


def _after(visit: Visit) -> tuple[int, str] | None:
    """Where a page begins: behind a letter, by number and sink."""
    try:
        text, _, sink = place(visit.query.get("after")).partition(" ")
        return (int(text), sink) if text else None
    except ValueError:
        raise Problem(400, "This is not a cursor of ours.", word="invalid", field="query.after") from None


def _back(visit: Visit) -> str:
    """The list, as it was filtered, if the form was in it."""
    asked = visit.form.get("query", "")[:1000]
    return f"/outbox/dead?{asked}" if asked and asked.isascii() and asked.isprintable() else "/outbox/dead"


def _gone(sink: str, event: int) -> EventNotFound:
    return EventNotFound(f"event {event} is no dead letter of sink {sink}, or somebody has redriven or discarded it")
