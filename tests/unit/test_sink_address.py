"""An address is seen by the client library and by nobody else, whatever text it gets into."""

from __future__ import annotations

import pytest

from livewell.outbox.sinks.address import DETAIL_CHARS_MAX, Address, read_address

PASSWORD = "pa55-w0rd/of+mine"  # noqa: S105 - it is nobody's


@pytest.mark.parametrize(
    ("address", "text", "secret"),
    [
        (f"nats://relay:{PASSWORD}@a.example:4222", "cannot parse nats://relay:{0}@a.example:4222", PASSWORD),
        ("amqp://relay:pa55%2Dw0rd@a.example/", "login with pa55-w0rd failed", "pa55-w0rd"),
        ("amqp://relay:pa55%2Dw0rd@a.example/", "login with pa55%2Dw0rd failed", "pa55%2Dw0rd"),
        ("https://a.example/hooks/T0K3N-of-mine", "POST /hooks/T0K3N-of-mine: 404", "T0K3N-of-mine"),
        ("https://a.example/hooks?sig=T0K3N-of-mine", "404 for ?sig=T0K3N-of-mine", "T0K3N-of-mine"),
        ("relay:T0K3N-of-mine", "SASL: T0K3N-of-mine is wrong", "T0K3N-of-mine"),
        ("redis://:T0K3N-of-mine@a.example,redis://b.example", "base64 VDBLM04tb2YtbWluZQ==", "VDBLM04tb2YtbWluZQ"),
    ],
)
def test_no_text_of_a_library_shows_it(address: str, text: str, secret: str) -> None:
    """As it was given, decoded, and in base64. Seen failing with hide() that only cuts."""
    hidden = Address("NAME", address).hide(text.format(PASSWORD))
    assert secret not in hidden
    assert hidden != ""


def test_a_text_without_it_stays_and_is_cut_to_fit() -> None:
    """What helps is kept: the name of the variable is not the secret."""
    address = Address("NATS_URL", "nats://relay:T0K3N-of-mine@a.example:4222")
    assert address.hide("[Errno 111] Connection refused") == "[Errno 111] Connection refused"
    assert len(address.hide("x " * 10_000)) <= DETAIL_CHARS_MAX


def test_it_has_a_repr_of_its_variable_alone() -> None:
    """In a traceback with locals, too."""
    address = read_address("env:HOOK", "sink hooks: address", {"HOOK": " https://a.example/T0K3N "})
    assert repr(address) == "Address(env:HOOK)"
    assert f"{address}" == "Address(env:HOOK)"
    assert address.reveal() == "https://a.example/T0K3N"
