"""What receivers are told and what their answers mean: pure functions."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pydantic import SecretStr

from livewell.alerts.channel import declared, read_channels
from livewell.alerts.delivery_verdict import answered, failed
from livewell.alerts.message import Message, discord, sign, webhook
from livewell.errors import CallFailed, ConfigurationError
from livewell.settings import AlertChannel, Settings

WHEN = datetime(2026, 11, 16, 17, 0, tzinfo=UTC)
MESSAGE = Message(UUID(int=7), "queue_deep", "mail", "P1", "queue mail: too deep", WHEN, WHEN)
OPS = {"name": "ops", "kind": "webhook", "address": "env:OPS_URL", "secret": "env:OPS_SECRET"}
CHAT = {"name": "chat", "kind": "discord", "address": "env:CHAT_URL", "level": "P1"}
ENVIRONMENT = {
    "OPS_URL": "https://ops.example.com/hook/TOKEN",
    "OPS_SECRET": "0123456789abcdef",
    "CHAT_URL": "https://chat.example.com/x",
}


def settings(*channels: dict[str, str]) -> Settings:
    """As a file with these channels gives them."""
    return Settings(alert_channels=tuple(map(AlertChannel.model_validate, channels)))


def test_a_signature_of_the_standards_example_is_right() -> None:
    """The test vector of Standard Webhooks."""
    secret = SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_secrets_two_signatures() -> None:
    """Base64 with the prefix is decoded, anything else is taken as it is."""
    plain = webhook(MESSAGE, SecretStr("0123456789abcdef")).headers["webhook-signature"]
    encoded = SecretStr("whsec_" + b64encode(b"0123456789abcdef").decode())
    assert webhook(MESSAGE, encoded).headers["webhook-signature"] == plain
    assert webhook(MESSAGE, SecretStr("0123456789abcdeg")).headers["webhook-signature"] != plain


def test_a_chat_message_is_cut_at_its_limit() -> None:
    """2,000 characters, of any text."""
    long = Message(UUID(int=7), "r", "s", "P1", "@here " * 1000, WHEN, WHEN)
    content = json.loads(discord(long).body)["content"]
    assert len(content) == 2000
    assert "@here" not in content


@pytest.mark.parametrize(
    ("status", "headers", "outcome", "again", "quiet", "gone"),
    [
        (200, {}, "sent", False, None, False),
        (204, {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.5"}, "sent", False, 2.0, False),
        (204, {"x-ratelimit-remaining": "3", "x-ratelimit-reset-after": "1.5"}, "sent", False, None, False),
        (301, {}, "refused", False, None, False),
        (400, {}, "refused", False, None, False),
        (408, {}, "refused", True, None, False),
        (410, {}, "refused", False, None, True),
        (429, {"retry-after": "7"}, "refused", True, 7.0, False),
        (429, {}, "refused", True, 60.0, False),
        (429, {"retry-after": "99999999"}, "refused", True, 86400.0, False),
        (429, {"retry-after": "soon"}, "refused", True, 60.0, False),
        (500, {}, "refused", True, None, False),
        (502, {}, "unknown", False, None, False),
        (503, {}, "refused", True, None, False),
        (599, {}, "unknown", False, None, False),
        (999, {}, "refused", False, None, False),
    ],
)
def test_an_answer_means(
    *, status: int, headers: dict[str, str], outcome: str, again: bool, quiet: float | None, gone: bool
) -> None:
    """As the table in verdict.py says."""
    found = answered(status, headers)
    assert (found.outcome, found.again, found.quiet_seconds, found.gone) == (outcome, again, quiet, gone)


@pytest.mark.parametrize(
    ("error", "outcome", "again"),
    [
        (CallFailed("connection", "x", sent=False), "refused", True),
        (CallFailed("deadline", "x", sent=False), "refused", True),
        (CallFailed("refused_address", "x", sent=False), "refused", False),
        (CallFailed("connection", "x", sent=True), "unknown", False),
        (CallFailed("deadline", "x", sent=True), "unknown", False),
        (CallFailed("too_large", "x", sent=True, status=200), "sent", False),
        (CallFailed("truncated", "x", sent=True, status=500), "refused", True),
    ],
)
def test_no_answer_means(error: CallFailed, outcome: str, again: bool) -> None:
    """What never left did not arrive; what left may have."""
    found = failed(error)
    assert (found.outcome, found.again) == (outcome, again)
    assert error.detail not in found.detail.split()


def test_channels_come_from_the_settings_and_addresses_from_the_environment() -> None:
    """What the database and a log are told has neither address nor secret."""
    channels = read_channels(Settings.model_validate({"alert_channels": [OPS, CHAT]}), ENVIRONMENT)

    assert [(one.name, one.kind, one.level, one.repeats, one.host) for one in channels] == [
        ("ops", "webhook", "P2", True, "ops.example.com"),
        ("chat", "discord", "P1", False, "chat.example.com"),
    ]
    shown = declared(channels) + repr(channels)
    assert "TOKEN" not in shown
    assert "example.com" not in shown
    assert "0123456789abcdef" not in shown


@pytest.mark.parametrize(
    "environment",
    [{}, {"CHAT_URL": " "}, {"CHAT_URL": "a\nb"}, {"CHAT_URL": "x" * 9000}],
    ids=["unset", "blank", "lines", "long"],
)
def test_a_variable_that_is_not_there_is_named_and_its_value_is_not(environment: dict[str, str]) -> None:
    """The variable, and where to set it."""
    with pytest.raises(ConfigurationError, match="in the variable CHAT_URL") as caught:
        read_channels(Settings.model_validate({"alert_channels": [CHAT]}), environment)
    assert "xxxx" not in str(caught.value)


def test_a_short_secret_is_refused() -> None:
    """And not shown."""
    with pytest.raises(ConfigurationError, match="fewer than 16") as caught:
        read_channels(Settings.model_validate({"alert_channels": [OPS]}), {**ENVIRONMENT, "OPS_SECRET": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "channel",
    [
        {**CHAT, "address": "https://chat.example.com/TOKEN"},
        {**CHAT, "kind": "pigeon"},
        {**CHAT, "level": "P3"},
        {**CHAT, "secret": "env:X"},
        {key: value for key, value in OPS.items() if key != "secret"},
        {**CHAT, "name": "Chat room"},
        {**CHAT, "colour": "red"},
    ],
)
def test_a_wrong_channel_ends_the_start_and_shows_no_address(
    channel: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Somebody wrote the address where its variable belongs."""
    monkeypatch.chdir(str(tmp_path))
    monkeypatch.setenv("LIVEWELL_ALERT_CHANNELS", json.dumps([channel]))
    with pytest.raises(ConfigurationError, match="LIVEWELL_ALERT_CHANNELS") as caught:
        Settings.load()
    assert "TOKEN" not in str(caught.value)


def test_two_channels_of_one_name_are_refused() -> None:
    """The name is the key of everything that is remembered."""
    with pytest.raises(ValueError, match="alert_channels"):
        Settings.model_validate({"alert_channels": [CHAT, CHAT]})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({**CHAT, "kind": "mail"}, "Look at: kind of number 2"),
        ({**CHAT, "address": "https://chat.example.com/SECRET"}, "Look at: address of number 2"),
        ({**CHAT, "secret": "env:NO"}, "Look at: what goes together of number 2"),
        ({**CHAT, "colour": "red"}, "Look at: colour of number 2"),
    ],
)
def test_a_wrong_channel_is_named_by_its_place_and_never_shown(wrong: dict[str, str], said: str) -> None:
    """There are up to twenty of them."""
    with pytest.raises(ConfigurationError) as refused:
        Settings.load(alert_channels=[OPS, wrong])
    assert said in str(refused.value)
    assert "SECRET" not in str(refused.value)
