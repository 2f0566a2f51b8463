"""A secret whose value is known is found in a text however it is written there (M3)."""

from __future__ import annotations

import base64
import html
import json
import random
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from livewell.telemetry.redact import MASK
from livewell.telemetry.secret_forms import Secrets

unhurried = settings(deadline=None)  # the default of 200 ms fails on a busy machine

# Marks that stand in no credential, so that what is left of the text around it can be compared.
BEFORE, AFTER = "«before»", "«after»"

credentials = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)

WAYS: dict[str, Callable[[str, random.Random], str]] = {
    "as it is": lambda secret, _: secret,
    "in capitals": lambda secret, _: secret.upper(),
    "in small letters": lambda secret, _: secret.lower(),
    "percent-encoded": lambda secret, _: quote(secret, safe=""),
    "percent-encoded throughout": lambda secret, _: "".join(f"%{ord(one):02x}" for one in secret),
    "percent-encoded twice": lambda secret, _: quote(quote(secret, safe=""), safe=""),
    "as JSON": lambda secret, _: json.dumps(secret)[1:-1],
    "as JSON in JSON": lambda secret, _: json.dumps(json.dumps(secret)[1:-1])[1:-1],
    "with \\u escapes": lambda secret, _: "".join(f"\\u{ord(one):04X}" for one in secret),
    "with \\x escapes": lambda secret, _: "".join(f"\\x{ord(one):02x}" for one in secret),
    "as HTML": lambda secret, _: html.escape(secret),
    "as HTML twice": lambda secret, _: html.escape(html.escape(secret)),
    "in decimal entities": lambda secret, _: "".join(f"&#{ord(one)};" for one in secret),
    "in hexadecimal entities": lambda secret, _: "".join(f"&#x{ord(one):04X};" for one in secret),
    "in base64": lambda secret, _: base64.b64encode(secret.encode()).decode(),
    "in base64 without padding": lambda secret, _: base64.b64encode(secret.encode()).decode().rstrip("="),
    "in base64 for addresses": lambda secret, _: base64.urlsafe_b64encode(secret.encode()).decode(),
    "in base64 with more around it": lambda secret, chance: base64.b64encode(
        chance.randbytes(chance.randrange(9)) + secret.encode() + chance.randbytes(chance.randrange(9))
    ).decode(),
    "in base64, percent-encoded": lambda secret, _: quote(
        base64.b64encode(secret.encode()).decode().rstrip("="), safe=""
    ),
    "in base64 in small letters": lambda secret, _: base64.b64encode(secret.encode()).decode().lower(),
    "in hex": lambda secret, _: secret.encode().hex(),
    "each character in its own way": lambda secret, chance: "".join(_any_way(one, chance) for one in secret),
}


def _any_way(one: str, chance: random.Random) -> str:
    number = ord(one)
    ways = [
        one,
        one.swapcase(),
        f"%{number:02X}",
        f"%25{number:02x}",
        f"\\u{number:04x}",
        f"\\\\u{number:04x}",
        f"&#{number};",
        f"&amp;#x{number:x};",
        f"\\u0026#{number};",
        f"\\u0025{number:02x}",
        f"%26%23{number}%3B",
        f"%5Cu{number:04x}",
    ]
    return chance.choice(ways)


@unhurried
@given(credentials, st.sampled_from(sorted(WAYS)), st.randoms(use_true_random=False))
@example("1b" * 8, "as it is", random.Random(0))
@example(";" * 30, "in decimal entities", random.Random(0))
@example("%25" * 8, "percent-encoded twice", random.Random(0))
def test_a_credential_is_hidden_however_it_is_written(secret: str, way: str, chance: random.Random) -> None:
    """Only what was around it is left (M3)."""
    written = WAYS[way](secret, chance)

    hidden = Secrets([secret]).hide(f"{BEFORE}{written}{AFTER}")

    assert hidden == f"{BEFORE}{MASK}{AFTER}"


@unhurried
@given(
    credentials,
    st.sampled_from(["%", "%4", "\\", "\\u00", "&#", "&#3", "&", "A", "%25", "="]),
    st.sampled_from(sorted(WAYS)),
)
def test_what_stands_before_a_credential_does_not_hide_it(secret: str, before: str, way: str) -> None:
    """ "%4" before a secret that begins with 1 is not read as an A."""
    written = WAYS[way](secret, random.Random(1))

    hidden = Secrets([secret]).hide(f"{BEFORE}{before}{written}")

    assert written not in hidden
    assert len(hidden) <= len(f"{BEFORE}{before}{MASK}")


@unhurried
@given(credentials, st.sampled_from(sorted(WAYS)), st.integers(0, 400), st.integers(0, 60))
def test_it_is_hidden_before_the_text_is_cut(secret: str, way: str, around: int, chars_max: int) -> None:
    """A cut through the middle of a credential leaves nothing of it."""
    written = WAYS[way](secret, random.Random(2))

    hidden = Secrets([secret]).hide("·" * around + written, chars_max)

    assert hidden == ("·" * around + MASK)[:chars_max]


@unhurried
@given(credentials, st.sampled_from(sorted(WAYS)), st.integers(0, 600))
def test_a_credential_at_the_end_of_what_is_searched_leaves_no_half(secret: str, way: str, back: int) -> None:
    """A text of megabytes is searched as far as the cut needs, and nothing beyond is shown."""
    written = WAYS[way](secret, random.Random(3))
    filling = "\N{FULL BLOCK}" * (2 * 300 + 256 - back)

    hidden = Secrets([secret]).hide((filling + written) * 2, 300)

    for size in range(8, len(written) + 1):
        assert written[:size] not in hidden
    assert set(Secrets([secret]).hide((written * 5000)[:400_000], 300)) <= set(MASK)


def test_a_text_without_a_secret_is_left_as_it_is() -> None:
    """Escapes that mean something else stay, too."""
    text = 'GET /a?b=%41%20c&d=\\u0041 "x" &amp; &lt;b&gt; 95 % — Zq7'

    assert Secrets(["Zq7canary", "another one"]).hide(text) == text
    assert Secrets([]).hide(text) == text


@pytest.mark.parametrize("short", ["", "a", "abc"])
def test_what_is_too_short_to_be_a_secret_hides_nothing(short: str) -> None:
    """A credential of three characters is a part of ordinary words."""
    assert Secrets([short]).hide("abc abc a") == "abc abc a"


def test_the_search_is_linear_whatever_secret_and_text_are() -> None:
    """Counted in steps, not in seconds.

    Each place of the text is looked at once, by each of its readings.
    """
    secret, text = "a;" * 1000, "&#97;&#59;a;" * 300
    hidden = Secrets([secret])
    looked = 0
    bits_of = hidden._bits_of

    def counted(character: str) -> int:
        nonlocal looked
        looked += 1
        return bits_of(character)

    hidden._bits_of = counted  # type: ignore[method-assign] # to count

    hidden.hide(text)

    assert looked <= 8 * len(text)


@unhurried
@given(credentials)
def test_a_value_that_repeats_a_credential_is_recognised(secret: str) -> None:
    """In a row as it would be stored."""
    known = Secrets([secret])

    assert known.is_in(json.dumps({"name": f"x {secret.upper()} y"}).encode())
    assert known.is_in(json.dumps({"next": f"https://h/?k={quote(secret, safe='')}"}).encode())
    assert known.is_in(json.dumps({"basic": base64.b64encode(f"u:{secret}".encode()).decode()}).encode())
    assert not known.is_in(b'{"name": "Apple Inc."}')


def test_a_short_credential_refuses_no_value() -> None:
    """The shared key "demo" is a word that values may hold."""
    assert not Secrets(["demo"]).is_in(b'{"name": "Demo Inc."}')
