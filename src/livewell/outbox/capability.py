"""The outbox, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, View

_PAGES = "livewell.server.dashboard.pages.outbox"

CAPABILITY = Capability(
    name="outbox",
    migrations=Path(__file__).parent / "sql",
    declares={"outbox": "livewell.outbox.outbox:Outbox"},
    api={"emit": "livewell.outbox.emit:Emit", "inbox": "livewell.outbox.inbox:Inbox"},
    work="livewell.outbox.worker_part:work",
    routes=("livewell.server.routes.outbox:router",),
    commands=(CommandEntry("outbox", "livewell.cli.commands.outbox:outbox", "Look and mend", 75),),
    housekeeping=(
        Chore(
            "SELECT livewell.prune_outbox(%s, %s, %s)",
            lambda settings: (settings.dead_days, settings.stat_days, 1000),
        ),
        Chore("SELECT livewell.ensure_event_days(%s)", lambda settings: (settings.history_days_ahead,)),
        Chore(
            "SELECT livewell.drop_event_day(%s, %s)",
            lambda settings: (settings.event_days, settings.inbox_days),
            if_locked="a day of events is read, and was not dropped yet",
        ),
    ),
    gauges="livewell.outbox.gauges:GAUGES",
    checks="livewell.outbox.doctor:CHECKS",
    stuck="livewell.outbox.stuck:stuck",
    views=(
        View("/outbox", "What is leaving?", f"{_PAGES}:panels", "Outbox"),
        View("/outbox/look", "Which event?", f"{_PAGES}:look", live=False),
        View("/outbox/sinks/{name}", "Does this sink take everything?", f"{_PAGES}_sink:panels"),
        View("/outbox/events/{id}", "Where did this event go?", f"{_PAGES}_event:panels"),
        View("/outbox/dead", "What did a sink not take in the end?", f"{_PAGES}_dead:panels"),
        View("/outbox/dead/{sink}/{id}", "Why did this event not arrive?", f"{_PAGES}_dead:one"),
    ),
    acts=(
        Act("/outbox/sinks/{name}/pause", f"{_PAGES}:pause"),
        Act("/outbox/sinks/{name}/resume", f"{_PAGES}:resume"),
        Act("/outbox/dead/redrive", f"{_PAGES}_dead:redrive_group"),
        Act("/outbox/dead/discard", f"{_PAGES}_dead:discard_group"),
        Act("/outbox/dead/{sink}/{id}/redrive", f"{_PAGES}_dead:redrive"),
        Act("/outbox/dead/{sink}/{id}/discard", f"{_PAGES}_dead:discard"),
        Act("/outbox/dead/{sink}/{id}/reveal", f"{_PAGES}_dead:reveal"),
        Act("/outbox/replays/{id}/cancel", f"{_PAGES}:cancel_replay", page="/outbox"),
    ),
    overview=f"{_PAGES}:overview",
)
