"""One form for each identity, whatever its spelling and the locale of the database (O9)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.contacts_sql import ContactSession

NORMAL = "SELECT livewell.normal_identity(%s, %s, %s, %s)"


@pytest.mark.parametrize(
    ("given_as", "expected"),
    [
        (" Ann@Example.COM ", "ann@example.com"),
        ("ANN+Shop@example.com.", "ann+shop@example.com"),
        ("JOSÉ@example.com", "josé@example.com"),
        ("jose\u0301@example.com", "josé@example.com"),
        ("ann@Bücher.example", "ann@xn--bcher-kva.example"),
        ("ann@BÜCHER.EXAMPLE", "ann@xn--bcher-kva.example"),
        ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
        ("ann@例え。テスト", "ann@xn--r8jz45g.xn--zckzah"),
        ("ann@mañana.com", "ann@xn--maana-pta.com"),
        ("ann@fa\u00df.de", "ann@xn--fa-hia.de"),
        ("ann@ليهمابتكلموشعربي؟.example", "ann@xn--egbpdaj6bu4bxfgehfvwxn.example"),
        ("\u00a0no-at-sign\u2003", "no-at-sign"),
        ("a@b@Example.com", "a@b@example.com"),
    ],
)
def test_an_address_has_one_form(contacts: ContactSession, given_as: str, expected: str) -> None:
    """Lower case, NFC, its domain in ASCII (RFC 3492 and IDNA for look-up)."""
    assert contacts.value(NORMAL, "email", given_as, False, False) == expected


def test_other_types_keep_their_case(contacts: ContactSession) -> None:
    """Without the spaces around them."""
    assert contacts.value(NORMAL, "external_id:shop", "\tAcct_7\n", False, False) == "Acct_7"


@pytest.mark.parametrize(
    ("plus", "dots", "expected"),
    [
        (True, False, "a.nn@example.com"),
        (False, True, "ann+shop@example.com"),
        (True, True, "ann@example.com"),
    ],
)
def test_folding_is_a_choice(contacts: ContactSession, plus: bool, dots: bool, expected: str) -> None:
    """Of the tenant."""
    assert contacts.value(NORMAL, "email", "a.nn+shop@example.com", plus, dots) == expected


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40), st.booleans())
def test_a_form_is_its_own_form(contacts: ContactSession, text: str, is_address: bool) -> None:
    """Or a stored identity would not find itself."""
    value = f"{text}@{text}.com" if is_address else text
    once = contacts.value(NORMAL, "email", value, False, False)
    assert contacts.value(NORMAL, "email", once, False, False) == once
