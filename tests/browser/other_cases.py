"""The forms of alerts, the outbox and access; act_cases.py has the order of all of them."""

from __future__ import annotations

from datetime import timedelta

from tests.browser.act_case import ActCase, number, paused

ALERTS = [
    ActCase(
        "/alerts/1/silence",
        "/alerts/1",
        "Silence",
        "Nobody is told of this alert for 4 h, until",
        ("alerts.silence queue_deep: mail",),
        "SELECT (SELECT date_trunc('minute', until - since) FROM livewell.alert_silence WHERE subject = 'mail')",
        timedelta(hours=4),
        typed={"for": "4"},
    ),
    ActCase(
        "/alerts/unsilence",
        "/alerts",
        "End the silence of queue deep, mail",
        "People are told of queue_deep, mail again.",
        ("alerts.unsilence queue_deep: mail",),
        number("alert_silence", "until > now()"),
        0,
    ),
    ActCase(
        "/alerts/channels/ops/test",
        "/alerts",
        "Send a test to ops",
        "A test of ops is asked for.",
        ("alerts.test ops",),
        number("notification", "channel = 'ops'"),
        1,
    ),
    ActCase(
        "/alerts/channels/phone/enable",
        "/alerts",
        "Enable phone",
        "phone is enabled: what waits for it is sent.",
        ("alerts.enable phone",),
        "SELECT disabled_at FROM livewell.alert_channel WHERE name = 'phone'",
        None,
    ),
]

OUTGOING = [
    ActCase(
        "/outbox/sinks/shop/pause",
        "/outbox",
        "Pause shop",
        "shop is paused: what is on its way may end, nothing more is sent.",
        ("outbox.pause shop",),
        paused("event_sink", "shop"),
        True,
    ),
    ActCase(
        "/outbox/sinks/stopped/resume",
        "/outbox/sinks/stopped",
        "Resume stopped",
        "stopped goes on.",
        ("outbox.resume stopped",),
        paused("event_sink", "stopped"),
        False,
    ),
    ActCase(
        "/outbox/dead/shop/9012/redrive",
        "/outbox/dead",
        "Redrive 9012 to shop",
        "Event 9012 goes to shop again, before later events of its key.",
        ("outbox.redrive",),
        number("event_delivery", "number = 9012"),
        1,
    ),
    ActCase(
        "/outbox/dead/shop/9013/reveal",
        "/outbox/dead/shop/9013",
        "Show it as it is stored",
        "hunter2",
        ("outbox.reveal event 9013",),
        number("audit", "action = 'outbox.reveal'"),
        1,
        where="#payload",
    ),
    ActCase(
        "/outbox/dead/shop/9011/discard",
        "/outbox/dead/shop/9011",
        "Discard this letter",
        "Event 9011 is discarded: shop does not get it.",
        ("outbox.discard",),
        number("event_block", "state = 'parked'"),
        0,
    ),
    ActCase(
        "/outbox/dead/redrive",
        "/outbox/dead?reason=refused",
        "Redrive all of shop, orders.created, refused",
        "10 events go to shop again.",
        ("outbox.redrive",),
        number("event_delivery", "number BETWEEN 9021 AND 9030"),
        10,
    ),
    ActCase(
        "/outbox/dead/discard",
        "/outbox/dead?reason=lost",
        "Discard all of shop, orders.created, lost",
        "4 events are discarded.",
        ("outbox.discard",),
        number("dead_event", "reason = 'lost'"),
        0,
    ),
    ActCase(
        "/outbox/replays/1/cancel",
        "/outbox",
        "Cancel replay 1",
        "Replay 1 is cancelled: what was sent again stays sent.",
        ("outbox.cancel",),
        "SELECT state::text FROM livewell.event_replay",
        "cancelled",
    ),
]

_REVOKED = "SELECT revoked_at IS NOT NULL FROM livewell.api_key WHERE id = '{}'"

ACCESS = [
    ActCase(
        "/access/keys",
        "/access",
        "Make the key",
        "lw_",
        ("keys.create",),
        number("api_key", "name = 'robot'"),
        1,
        where="#secret",
        typed={"Name, for people": "robot"},
    ),
    ActCase(
        "/access/keys/robot00001/revoke",
        "/access",
        "Revoke old robot robot00001",
        "robot00001 is revoked.",
        ("keys.revoke robot00001",),
        _REVOKED.format("robot00001"),
        True,
    ),
    ActCase(
        "/access/logins/login00001/end",
        "/access",
        "End login00001",
        "login00001 is ended.",
        ("logins.end login00001",),
        _REVOKED.format("login00001"),
        True,
    ),
]

# After each of these nobody is logged in.
LEAVING = [
    ActCase(
        "/logout",
        "/",
        "Log out",
        "This is where a login link leads.",
        ("logins.end",),
        number("audit", "action = 'logins.end' AND actor = 'key:' || subject"),
        1,
        where="h1",
    ),
    ActCase(
        "/access/logins/end",
        "/access",
        "Log out everywhere",
        "This is where a login link leads.",
        ("logins.end_all all logins",),
        number("api_key", "kind = 'login' AND revoked_at IS NULL"),
        0,
        where="h1",
    ),
]
