"""Telling people, against real receivers on this machine.

Slow, dead, unwell, gone, redirecting, private (F-E10).

The judge is the receiver's own log; the ledger says what we believe.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import signal
import sys
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from pydantic import SecretStr

from livewell.alerts.admin import AlertAdmin
from livewell.alerts.channel import Channel
from livewell.alerts.deliver import Delivered, deliver, prune
from livewell.db import Database
from livewell.settings import Settings
from livewell.testing.processes import ChildProcess, eventually_async, free_port
from tests.integration.alerts.conftest import SIGNING
from tests.support.alerts_sql import AlertSession
from tests.support.receiver import Received, Receiver, Reply, always, hang_up, reply, silence


@pytest.fixture
def fired(alerts: AlertSession) -> AlertSession:
    """One alert has fired."""
    alerts.observe("roof")
    return alerts


def chat(receiver: Receiver, name: str = "chat") -> Channel:
    """A Discord-style webhook to it."""
    return Channel(name, "discord", "P2", "env:CHAT", SecretStr(receiver.url))


# -- what is said --------------------------------------------------------------------------------


async def test_a_webhook_is_signed_over_its_id_its_time_and_its_body(
    fired: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """As Standard Webhooks: whoever has the secret can check it, and nobody else can make it."""
    assert await deliver(database, [webhook]) == Delivered(sent=1)

    [received] = receiver.received
    given = received.headers
    signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + received.body
    expected = hmac.new(SIGNING.encode(), signed, hashlib.sha256).digest()
    assert given["webhook-signature"].startswith("v1,")
    assert b64decode(given["webhook-signature"].removeprefix("v1,")) == expected
    assert given["webhook-timestamp"] == str(int(fired.now().timestamp()))
    assert received.document["id"] == given["webhook-id"]
    assert received.document["data"] == {
        "rule": "sky",
        "subject": "roof",
        "level": "P1",
        "summary": "the roof is falling",
    }


async def test_a_chat_message_pings_nobody(alerts: AlertSession, database: Database, receiver: Receiver) -> None:
    """Whatever a summary says, and however long it is."""
    alerts.observe("@everyone " + "x" * 400)
    await deliver(database, [chat(receiver)])

    [document] = receiver.documents
    assert document["allowed_mentions"] == {"parse": []}
    assert "@everyone" not in document["content"]
    assert len(document["content"]) <= 2000


# -- once ----------------------------------------------------------------------------------------


async def test_five_senders_at_once_tell_every_channel_once(
    alerts: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """Ten firings, two channels, twenty messages."""
    alerts.observe(*(f"roof {n}" for n in range(10)))
    channels = [webhook, chat(receiver)]
    await asyncio.gather(*(deliver(database, channels) for _ in range(5)))
    await deliver(database, channels)

    assert len(receiver.received) == 20
    assert alerts.told() == ["sent"] * 20


async def test_without_a_channel_nothing_is_sent_and_nothing_fails(fired: AlertSession, database: Database) -> None:
    """The alert is in the lists."""
    assert await deliver(database, []) == Delivered()
    assert fired.told() == []


# -- silences and tests --------------------------------------------------------------------------


async def test_in_a_silence_no_message_leaves_and_after_it_one_does(
    alerts: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """The receiver's own log is the judge."""
    alerts.observe(rule="sky")
    await AlertAdmin(database).silence("sky", seconds=3600)
    alerts.observe("roof")
    assert await deliver(database, [webhook]) == Delivered()
    assert receiver.received == []
    alerts.advance(3601)
    alerts.observe("roof")
    assert await deliver(database, [webhook]) == Delivered(sent=1)
    assert [one["data"]["subject"] for one in receiver.documents] == ["roof"]


async def test_a_test_arrives_as_a_test(
    alerts: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """Through one of two channels; its outcome is in the list."""
    channels = [webhook, chat(receiver)]
    await deliver(database, channels)
    admin = AlertAdmin(database)
    assert await admin.test("ops") == "nobody"  # no worker runs schedules here
    assert await deliver(database, channels) == Delivered(sent=1)
    [document] = receiver.documents
    assert document["type"] == "livewell.alert.test"
    assert "Nothing is wrong" in document["data"]["summary"]
    await admin.test("chat")
    await deliver(database, channels)
    assert receiver.documents[1]["content"].startswith("**[test] Livewell alert channel**\nThis is a test")
    assert [(one["name"], one["test_state"]) for one in await admin.channels()] == [("chat", "sent"), ("ops", "sent")]
    assert alerts.alert_states() == []


# -- receivers that are not well -----------------------------------------------------------------


async def test_a_receiver_that_never_answers_is_unknown_and_a_chat_is_not_told_again(
    fired: AlertSession, database: Database, receiver: Receiver
) -> None:
    """It has the message: its log says so."""
    receiver.answer = silence
    assert await deliver(database, [chat(receiver)]) == Delivered(unknown=1)
    receiver.answer = always(204)
    fired.advance(3600)
    await deliver(database, [chat(receiver)])

    assert len(receiver.received) == 1
    assert fired.told() == ["unknown"]


async def test_a_webhook_that_never_answered_is_told_again_with_the_same_id(
    fired: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """So that it can drop what it had."""
    receiver.answer = hang_up
    await deliver(database, [webhook])
    receiver.answer = always(200)
    fired.advance(60)
    assert await deliver(database, [webhook]) == Delivered(sent=1)

    assert len(receiver.received) == 2
    assert len({one.headers["webhook-id"] for one in receiver.received}) == 1


async def test_a_dead_receiver_is_tried_again_and_then_given_up(fired: AlertSession, database: Database) -> None:
    """Nobody listens; eight attempts, then it is refused and counted."""
    dead = Channel("chat", "discord", "P2", "env:CHAT", SecretStr(f"http://127.0.0.1:{free_port()}/hook"))
    for _ in range(12):
        await deliver(database, [dead])
        fired.advance(700)

    assert fired.told() == ["refused"]
    assert fired.value("SELECT count(*) FROM livewell.notification_attempt") == 8
    assert fired.warnings() == ["a notification was refused"]


async def test_a_receiver_that_was_dead_for_a_while_is_told_once(fired: AlertSession, database: Database) -> None:
    """It comes back on the same address."""
    receiver = Receiver()
    receiver.port = free_port()
    await deliver(database, [chat(receiver)])
    fired.advance(60)
    async with receiver:
        assert await deliver(database, [chat(receiver)]) == Delivered(sent=1)
        await deliver(database, [chat(receiver)])
        assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [500, 503])
async def test_an_unwell_receiver_is_told_later(
    fired: AlertSession, database: Database, receiver: Receiver, status: int
) -> None:
    """It said no, so it is safe to try again."""
    receiver.answer = always(status)
    assert await deliver(database, [chat(receiver)]) == Delivered(refused=1)
    assert await deliver(database, [chat(receiver)]) == Delivered()
    receiver.answer = always(204)
    fired.advance(11)
    assert await deliver(database, [chat(receiver)]) == Delivered(sent=1)


@pytest.mark.parametrize("status", [502, 504])
async def test_a_gateways_error_says_nothing(
    fired: AlertSession, database: Database, receiver: Receiver, status: int
) -> None:
    """The receiver behind it may have the message."""
    receiver.answer = always(status)
    await deliver(database, [chat(receiver)])
    assert fired.told() == ["unknown"]


async def test_a_receiver_that_is_gone_is_left_alone(
    fired: AlertSession, database: Database, receiver: Receiver
) -> None:
    """410 disables the channel; what comes later waits."""
    receiver.answer = always(410)
    assert await deliver(database, [chat(receiver)]) == Delivered(refused=1)
    fired.observe("roof", "wall")
    for _ in range(3):
        fired.advance(3600)
        assert await deliver(database, [chat(receiver)]) == Delivered()

    assert len(receiver.received) == 1
    assert fired.value("SELECT disabled_at IS NOT NULL FROM livewell.alert_channel") is True
    assert "a receiver is gone and its channel was disabled" in fired.warnings()


async def test_a_redirect_is_refused_and_nobody_else_is_told(
    fired: AlertSession, database: Database, receiver: Receiver
) -> None:
    """A webhook that was taken over must not lead our words elsewhere."""
    async with Receiver() as elsewhere:
        receiver.answer = always(307, Location=elsewhere.url)
        assert await deliver(database, [chat(receiver)]) == Delivered(refused=1)
        assert elsewhere.connections == 0
    assert fired.told() == ["refused"]


async def test_a_private_address_is_refused_unless_the_settings_name_it(
    fired: AlertSession, queue_dsn: str, receiver: Receiver
) -> None:
    """No connection is made."""
    database = Database(queue_dsn, Settings(database_url=SecretStr(queue_dsn)))
    await database.open()
    try:
        assert await deliver(database, [chat(receiver)]) == Delivered(refused=1)
    finally:
        await database.close()

    assert receiver.connections == 0
    assert fired.told() == ["refused"]
    assert "outbound_private_hosts" in fired.value("SELECT detail FROM livewell.notification_attempt")


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_receiver_that_does_not_want_it_is_not_asked_again(
    fired: AlertSession, database: Database, receiver: Receiver, status: int
) -> None:
    """The address is wrong; the warning says so."""
    receiver.answer = always(status)
    await deliver(database, [chat(receiver)])
    fired.advance(3600)
    await deliver(database, [chat(receiver)])
    assert len(receiver.received) == 1
    assert fired.told() == ["refused"]


# -- limits of the receiver ----------------------------------------------------------------------


async def test_a_receivers_limit_is_kept_by_a_process_that_starts_later(
    fired: AlertSession, database: Database, receiver: Receiver, queue_dsn: str
) -> None:
    """Retry-After is in the database, so a restart does not forget it."""
    receiver.answer = always(429, Retry_After="120")
    await deliver(database, [chat(receiver)])
    receiver.answer = always(204)
    later = Database(queue_dsn, database.settings)
    await later.open()
    try:
        fired.advance(119)
        assert await deliver(later, [chat(receiver)]) == Delivered()
        fired.advance(2)
        assert await deliver(later, [chat(receiver)]) == Delivered(sent=1)
    finally:
        await later.close()
    assert len(receiver.received) == 2


async def test_an_empty_bucket_that_came_with_a_yes_is_respected(
    alerts: AlertSession, database: Database, receiver: Receiver
) -> None:
    """Discord says beforehand that the next one would be too many."""
    alerts.observe("roof", "wall")
    receiver.answer = always(204, X_RateLimit_Remaining="0", X_RateLimit_Reset_After="1.5")
    assert await deliver(database, [chat(receiver)]) == Delivered(sent=1)
    alerts.advance(2)
    assert await deliver(database, [chat(receiver)]) == Delivered(sent=1)
    assert len(receiver.received) == 2


# -- isolation -----------------------------------------------------------------------------------


async def test_a_slow_receiver_does_not_hold_up_the_others(
    alerts: AlertSession, database: Database, receiver: Receiver
) -> None:
    """The quick one has all ten while the slow one has not answered its first."""
    alerts.observe(*(f"roof {n}" for n in range(10)))
    async with Receiver() as quick:
        seen: list[int] = []

        async def answer_late(_: Received) -> Reply:
            await eventually_async(lambda: len(quick.received) == 10)
            seen.append(len(quick.received))
            return reply(204)

        receiver.answer = answer_late
        slow_one = replace(chat(receiver), name="slow")
        await deliver(database, [slow_one, replace(chat(quick), name="quick")])

    assert seen[0] == 10
    assert len(quick.received) == 10


# -- faults of our own ---------------------------------------------------------------------------

SENDER = """
import asyncio, sys
from pydantic import SecretStr
from livewell.alerts.admin import AlertAdmin
from livewell.alerts.channel import Channel
from livewell.alerts.deliver import deliver
from livewell.db import Database
from livewell.settings import Settings

async def main(dsn, url, kind):
    database = Database(dsn, Settings(database_url=SecretStr(dsn), outbound_private_hosts=("127.0.0.1",)))
    await database.open()
    secret = SecretStr("signed by a test, and long enough") if kind == "webhook" else None
    await deliver(database, [Channel("ops", kind, "P2", "env:OPS", SecretStr(url), secret)])

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("kind", "messages", "end"), [("discord", 1, "unknown"), ("webhook", 2, "sent")])
async def test_a_sender_killed_after_it_sent_leaves_what_the_page_says(
    *,
    fired: AlertSession,
    database: Database,
    receiver: Receiver,
    queue_dsn: str,
    tmp_path: Path,
    kind: str,
    messages: int,
    end: str,
) -> None:
    """kill -9 between sending and recording.

    The attempt is in the ledger, pending, and becomes unknown. A chat is not told again, a webhook
    is, with the same id.
    """
    script = tmp_path / "sender.py"
    script.write_text(SENDER)
    child: list[ChildProcess] = []

    async def kill_the_sender(_: Received) -> Reply:
        os.kill(child[0].pid, signal.SIGKILL)
        return None

    receiver.answer = kill_the_sender
    with ChildProcess([script, queue_dsn, receiver.url, kind], program=sys.executable) as process:
        child.append(process)
        await asyncio.to_thread(process.wait, 30)
    assert fired.told() == ["pending"]

    receiver.answer = always(204)
    secret = SecretStr(SIGNING) if kind == "webhook" else None
    channel = Channel("ops", kind, "P2", "env:OPS", SecretStr(receiver.url), secret)
    assert await deliver(database, [channel]) == Delivered()
    fired.advance(31)
    assert await deliver(database, [channel]) == Delivered(unknown=1)
    fired.advance(60)
    await deliver(database, [channel])
    assert (len(receiver.received), fired.told()) == (messages, [end])
    if kind == "webhook":
        assert len({one.headers["webhook-id"] for one in receiver.received}) == 1


async def test_an_attempt_that_was_held_up_sends_nothing(
    fired: AlertSession, database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was frozen between recording and sending must not speak for an attempt that was given up."""
    monkeypatch.setattr("livewell.alerts.deliver._LEASE_MARGIN_SECONDS", -1.0)
    assert await deliver(database, [chat(receiver)]) == Delivered(refused=1)
    assert receiver.received == []
    monkeypatch.undo()
    fired.advance(60)
    assert await deliver(database, [chat(receiver)]) == Delivered(sent=1)


async def test_an_address_is_nowhere_but_on_the_wire(
    fired: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """Not in rows, logs, errors or reprs, whatever goes wrong."""
    with structlog.testing.capture_logs() as logs:
        for answer in (always(500), hang_up, always(404)):
            receiver.answer = answer
            await deliver(database, [webhook])
            fired.advance(60)
    rows = [
        fired.rows(f"SELECT to_jsonb(t)::text FROM livewell.{table} t")
        for table in ("alert_channel", "notification", "notification_attempt", "warning", "alert_firing")
    ]
    shown = json.dumps([rows, logs, repr(webhook)], default=str)

    assert len(receiver.received) == 3
    assert "SECRET-TOKEN" not in shown
    assert "127.0.0.1" not in shown
    assert SIGNING not in shown


async def test_what_ended_long_ago_is_pruned(fired: AlertSession, database: Database, receiver: Receiver) -> None:
    """By the one call that the scheduler makes."""
    await deliver(database, [chat(receiver)])
    fired.observe()
    fired.advance(601)
    fired.observe()
    fired.advance(40 * 86400)
    assert await prune(database) == 2
    assert fired.firings() == 0
