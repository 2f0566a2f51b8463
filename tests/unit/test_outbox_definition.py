"""Sinks and topics as they are declared, by an app and in the settings (demand of O6: a closed list, no secrets)."""

from __future__ import annotations

from typing import Any

import pytest

from livewell import Livewell
from livewell.errors import ConfigurationError
from livewell.outbox.sink import Sink
from livewell.refresh.definition.credentials import own_variables
from livewell.settings import Settings

SHOP = {"name": "shop", "kind": "nats", "address": "env:NATS_URL", "options": {"credentials": "env:NATS_CREDS"}}


def nothing() -> Sink:
    """Nobody makes it here."""
    raise AssertionError("a sink was made")


def of(*sinks: dict[str, Any]) -> Settings:
    return Settings.model_validate({"sinks": list(sinks)})


def test_sinks_of_the_settings_stand_beside_those_of_the_app() -> None:
    app = Livewell(of(SHOP, {"name": "erp", "kind": "outside", "topics": ["orders.*"]}))
    app.outbox.sink("mine", nothing)

    found = {one.name: one for one in app.outbox.definitions(app.settings)}
    assert {name: (one.kind, one.outside) for name, one in found.items()} == {
        "mine": ("own", False),
        "shop": ("nats", False),
        "erp": ("outside", True),
    }
    assert found["erp"].topics == ("orders.*",)
    assert found["shop"].policy == found["mine"].policy


def test_a_kind_takes_an_address_and_options() -> None:
    """Nothing is connected, and no variable read, before a relay makes it."""
    app = Livewell(Settings())
    app.outbox.sink("shop", "nats", address="env:NATS_URL", topics=["orders.*"], prefix="shop.")
    assert app.outbox.sinks["shop"].kind == "nats"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"to": "natz"}, "there are: file, kafka"),
        ({"to": nothing, "address": "env:A"}, "address: only a sink of a kind"),
        ({"to": None, "prefix": "x"}, "prefix: only a sink of a kind"),
        ({"to": nothing, "topics": ["a b"]}, "beginnings with a star"),
        ({"to": nothing, "attempts": 0}, "attempts=0"),
        ({"to": nothing, "deadline": 0}, "0.1 to 600"),
    ],
)
def test_what_cannot_be_declared_is_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Livewell(Settings()).outbox.sink("shop", **arguments)


def test_a_name_is_declared_once() -> None:
    app = Livewell(of(SHOP))
    app.outbox.sink("shop", nothing)
    with pytest.raises(ConfigurationError, match="declared twice"):
        app.outbox.sink("shop", nothing)
    with pytest.raises(ConfigurationError, match="by the app and in the setting sinks"):
        app.outbox.definitions(app.settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "nats://user:hunter2@example.com"},
        {"topics": []},
        {"topics": ["a b"]},
        {"backoff_base_seconds": 9, "backoff_cap_seconds": 1},
        {"kind": "outside"},
        {"surprise": 1},
    ],
)
def test_a_wrong_table_is_named_and_not_shown(wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may have written the address where the name of its variable belongs."""
    monkeypatch.chdir("/")
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(sinks=[SHOP, {**SHOP, "name": "other", **wrong}])
    assert "of number 2" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_two_tables_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="sinks"):
        of(SHOP, SHOP)


def test_no_upstream_may_be_sent_what_a_sink_is_reached_with() -> None:
    """Seen failing before credentials.py knew of sinks."""
    assert own_variables(of(SHOP)) == {"NATS_URL", "NATS_CREDS"}
