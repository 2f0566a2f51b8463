"""Channels of apprise, with its plugin for plain JSON against a receiver on this machine."""

from __future__ import annotations

import logging

import pytest
from pydantic import SecretStr

from livewell.alerts.channel import Channel
from livewell.alerts.deliver import Delivered, deliver
from livewell.db import Database
from livewell.settings import Settings
from livewell.testing.processes import free_port
from tests.support.alerts_sql import AlertSession
from tests.support.receiver import Receiver, always

pytest.importorskip("apprise")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its hundred plugins


def phone(address: str) -> Channel:
    """Whatever apprise makes of an address."""
    return Channel("phone", "apprise", "P2", "env:PHONE", SecretStr(address))


async def test_apprise_tells_it_once(alerts: AlertSession, database: Database, receiver: Receiver) -> None:
    """Title and text, by its own plugin."""
    alerts.observe("roof")
    receiver.answer = always(200)
    channel = phone(f"json://127.0.0.1:{receiver.port}/hook")
    assert await deliver(database, [channel]) == Delivered(sent=1)
    assert await deliver(database, [channel]) == Delivered()

    [document] = receiver.documents
    assert document["title"] == "[P1] sky"
    assert document["message"].startswith("the roof is falling")


async def test_the_guard_judges_its_host_first(alerts: AlertSession, queue_dsn: str, receiver: Receiver) -> None:
    """No connection is made to an address of our own network that no setting names."""
    alerts.observe("roof")
    database = Database(queue_dsn, Settings(database_url=SecretStr(queue_dsn)))
    await database.open()
    try:
        found = await deliver(database, [phone(f"json://127.0.0.1:{receiver.port}/hook")])
    finally:
        await database.close()

    assert found == Delivered(refused=1)
    assert receiver.connections == 0
    assert alerts.told() == ["refused"]


@pytest.mark.parametrize("there", [True, False])
async def test_its_no_is_an_unknown_outcome(
    alerts: AlertSession, database: Database, receiver: Receiver, there: bool
) -> None:
    """It does not say whether the message arrived, so it is not sent again."""
    alerts.observe("roof")
    receiver.answer = always(500)
    port = receiver.port if there else free_port()
    assert await deliver(database, [phone(f"json://127.0.0.1:{port}/hook")]) == Delivered(unknown=1)
    alerts.advance(3600)
    assert await deliver(database, [phone(f"json://127.0.0.1:{port}/hook")]) == Delivered()
    assert alerts.told() == ["unknown"]


async def test_an_address_it_does_not_know_is_refused_and_shown_nowhere(
    alerts: AlertSession, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Also not by apprise's own logger."""
    alerts.observe("roof")
    with caplog.at_level(logging.DEBUG):
        assert await deliver(database, [phone("nonsense://TOKEN-12345")]) == Delivered(refused=1)
    assert "TOKEN-12345" not in caplog.text
    assert "TOKEN-12345" not in str(alerts.rows("SELECT to_jsonb(a)::text FROM livewell.notification_attempt a"))
