"""What went wrong, and who knows? Alerts that fire and have fired, silences, and who is told."""

from __future__ import annotations

from datetime import UTC

from livewell.alerts.admin import AlertAdmin, Record
from livewell.duration import seconds
from livewell.operations.manual import find_page
from livewell.operations.state import failed_parts
from livewell.server.answers.json_answer import cursor, place
from livewell.server.answers.problems import Problem
from livewell.server.dashboard.manual import blocks
from livewell.server.dashboard.pages.unjudged import unjudged
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded
from livewell.words import span

TONES = {"fired": "bad", "cooling": "warn", "armed": "none"}
OUTCOME_TONES = {"sent": "fresh", "waiting": "warn", "pending": "none", "silenced": "none"}  # others are bad
LENGTHS = {"1h": "an hour", "4h": "4 hours", "12h": "12 hours", "1d": "a day", "7d": "7 days"}


async def panels(visit: Visit) -> list[Panel]:
    """Alerts that fire, what is silenced, who is told, and what is over."""
    admin = AlertAdmin(visit.database)

    async def firing() -> Loaded:
        found = await admin.urgent(after=_place(visit.query.get("firing")), limit=PAGE_ROWS)
        following = _cursor(found[-1]) if len(found) == PAGE_ROWS else None
        sample = await visit.state.looks.sampler.look()
        broken = failed_parts(sample.document).get("alerts")
        unknown = ["the state of the rules could not be read"] if broken is not None else unjudged(sample.document)
        return loaded(alerts=found, unjudged=unknown, tones=TONES, next=following, is_empty=not (found or unknown))

    async def silences() -> Loaded:
        found = await admin.silences()
        return loaded(silences=found[:PAGE_ROWS], others=max(0, len(found) - PAGE_ROWS), is_empty=not found)

    async def channels() -> Loaded:
        found = await admin.channels()
        return loaded(channels=found, tones=OUTCOME_TONES, is_empty=not found)

    async def past() -> Loaded:
        found = await admin.past(before=visit.after, limit=PAGE_ROWS)
        following = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(firings=found, next=following, is_empty=not found)

    return [
        Panel("firing", "Wrong now", "alerts.html", firing, "Nothing: no alert fires."),
        Panel(
            "channels",
            "Who is told",
            "channels.html",
            channels,
            "Nobody: no channel is set, so alerts are only to be seen here. How to set one: livewell docs howto/alerts",
        ),
        Panel("silences", "Silenced", "silences.html", silences, "Nothing: people are told of everything that fires."),
        Panel("past", "Over", "firings.html", past, "Nothing that was wrong is over."),
    ]


async def one_alert(visit: Visit) -> list[Panel]:
    """One alert: what it is, who was told, and what to do."""
    admin = AlertAdmin(visit.database)
    alert = await admin.alert(visit.number("id"))
    rule = alert["rule"]

    async def facts() -> Loaded:
        silences = [
            one
            for one in (await admin.silences() if alert["silenced_until"] else ())
            if one["rule"] == rule and one["subject"] in ("", alert["subject"])
        ]
        return loaded(alert=alert, silences=silences, tones=TONES, lengths=LENGTHS)

    async def told() -> Loaded:
        firings = alert["firings_shown"]
        return loaded(firings=firings, tones=OUTCOME_TONES, is_empty=not firings)

    async def manual() -> Loaded:
        path = find_page(f"operations/alerts/{rule}")
        return loaded(blocks=blocks(path.read_text(encoding="utf-8")) if path else [], is_empty=path is None)

    return [
        Panel("alert", f"{alert['level']} {rule.replace('_', ' ')}", "alert.html", facts),
        Panel("told", "Who was told", "alert_told.html", told, "Its firings are older than what is kept."),
        Panel(
            "manual",
            "What it means, and what to do",
            "manual.html",
            manual,
            f"There is no page of this rule. A capability brings it as operations/alerts/{rule}.md",
        ),
    ]


async def silence(visit: Visit) -> Done:
    """Tell nobody of this alert, or of its whole rule, for a while."""
    alert = await AlertAdmin(visit.state.pools.operate).alert(visit.number("id"))
    is_rule = visit.form.get("of") == "rule"
    length = seconds(visit.form.get("for", ""), "for")
    until = await _acting(visit).silence(alert["rule"], subject="" if is_rule else alert["subject"], seconds=length)
    what = f"any alert of {alert['rule']}" if is_rule else "this alert"
    return Done(
        f"Nobody is told of {what} for {span(length)}, until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC.", _back(visit)
    )


async def unsilence(visit: Visit) -> Done:
    """End a silence now."""
    rule, subject = visit.form.get("rule", ""), visit.form.get("subject", "")
    await _acting(visit).unsilence(rule, subject=subject)
    return Done(f"People are told of {rule}{f', {subject}' if subject else ''} again.", "/alerts")


async def test(visit: Visit) -> Done:
    """Send a test message through a channel."""
    name = visit.parts["name"]
    said = {
        "asked": f"A test of {name} is asked for; its outcome is shown below.",
        "nobody": f"A test of {name} is asked for. No worker was here for a minute: one that starts sends it.",
        "waiting": f"The last test of {name} is not over yet.",
    }
    return Done(said[await _acting(visit).test(name)], "/alerts")


async def enable(visit: Visit) -> Done:
    """Let a channel send again."""
    await _acting(visit).enable(visit.parts["name"])
    return Done(f"{visit.parts['name']} is enabled: what waits for it is sent.", "/alerts")


def _cursor(last: Record) -> str:
    """Where the list goes on: behind an alert, by state, level and number."""
    return cursor(f"{'cooling' if last['state'] != 'fired' else 'fired'} {last['level']} {last['id']}")


def _place(after: str | None) -> Record | None:
    """What _cursor meant."""
    try:
        text = place(after)
        state, level, number = text.split(" ") if text else ("", "", "")
        is_ours = state in ("fired", "cooling") and number.isascii() and number.isdigit() and int(number) < 2**63
        if text and not is_ours:
            raise ValueError(text)
    except ValueError:
        raise Problem(400, "This is not a cursor of ours.", word="invalid", field="query.firing") from None
    return {"is_cooling": state == "cooling", "level": level, "id": int(number)} if text else None


def _back(visit: Visit) -> str:
    return f"/alerts/{visit.number('id')}"


def _acting(visit: Visit) -> AlertAdmin:
    return AlertAdmin(visit.state.pools.operate, visit.state.nudger)
