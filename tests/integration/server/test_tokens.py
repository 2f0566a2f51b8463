"""JSON Web Tokens: one fixed algorithm per issuer, and everything that is not exactly right is refused alike."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from livewell.errors import ConfigurationError
from livewell.server.auth.web_tokens import Tokens, user_of
from livewell.settings import Issuer, Settings
from tests.support.http import Web

SECRET = "s" * 40
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def pem(private: Any) -> str:
    """The public half."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(private.public_key().public_bytes(serialization.Encoding.PEM, form).decode())


KEYS: dict[str, tuple[str, Any, str]] = {
    "rsa": ("RS256", RSA, pem(RSA)),
    "ec": ("ES256", EC, pem(EC)),
    "ed": ("EdDSA", ED, pem(ED)),
    "hs": ("HS256", SECRET, SECRET),
}


def issuer(name: str, **changes: Any) -> Issuer:
    """An issuer whose key is in the environment."""
    row = {
        "name": name,
        "issuer": f"https://{name}.example",
        "audience": "livewell",
        "algorithm": KEYS[name][0],
        "key": f"env:LIVEWELL_TEST_JWT_{name.upper()}",
    }
    return Issuer(**{**row, **changes})


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (_, _, text) in KEYS.items():
        monkeypatch.setenv(f"LIVEWELL_TEST_JWT_{name.upper()}", text)


@pytest.fixture
def server_settings(server_settings: Settings) -> Settings:
    """With all four issuers."""
    return server_settings.model_copy(update={"jwt": tuple(issuer(name) for name in KEYS)})


def claims(name: str = "rsa", **changes: Any) -> dict[str, Any]:
    """Of a good token; None takes one away."""
    row = {"iss": f"https://{name}.example", "aud": "livewell", "sub": "ann", "exp": int(time.time()) + 60, **changes}
    return {key: value for key, value in row.items() if value is not None}


def signed(name: str = "rsa", **changes: Any) -> str:
    """A token as its issuer would make it."""
    return jwt.encode(claims(name, **changes), KEYS[name][1], algorithm=KEYS[name][0])


def unsigned(header: dict[str, Any], payload: dict[str, Any]) -> str:
    """A token by hand."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, payload)]
    return ".".join([*parts, ""])


@pytest.mark.parametrize("name", KEYS)
async def test_a_good_token_is_a_user(web: Web, name: str) -> None:
    """Each algorithm.

    The user is named after issuer and subject, so that two issuers' subjects are two users.
    """
    answer = await web.bearer(signed(name)).post("/v1/sessions")

    assert answer.status_code == 201
    assert web.rows("SELECT user_id FROM livewell.viewer_session") == [(f"jwt:{name}:ann",)]


def hmac_with_public_key() -> str:
    """The oldest trick: the public key of RS256 taken for the secret of HS256."""
    head = unsigned({"alg": "HS256", "typ": "JWT"}, claims()).rstrip(".")
    signature = hmac.new(pem(RSA).encode(), head.encode(), hashlib.sha256).digest()
    return f"{head}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def changed(token: str) -> str:
    """Another payload under the old signature."""
    head, _, signature = token.split(".")
    payload = base64.urlsafe_b64encode(json.dumps(claims(sub="root")).encode()).decode().rstrip("=")
    return f"{head}.{payload}.{signature}"


FORGED: dict[str, Callable[[], str]] = {
    "expired": lambda: signed(exp=int(time.time()) - 60),
    "no expiry": lambda: signed(exp=None),
    "no subject": lambda: signed(sub=None),
    "no audience": lambda: signed(aud=None),
    "another audience": lambda: signed(aud="shop"),
    "no issuer": lambda: signed(iss=None),
    "another issuer": lambda: signed(iss="https://evil.example"),
    "issuer of another key": lambda: signed(iss="https://ec.example"),
    "not yet": lambda: signed(nbf=int(time.time()) + 600),
    "empty subject": lambda: signed(sub=""),
    "long subject": lambda: signed(sub="x" * 201),
    "subject with control characters": lambda: signed(sub="ann\nbob"),
    "signed by somebody else": lambda: jwt.encode(claims(), OTHER_RSA, algorithm="RS256"),
    "alg none": lambda: unsigned({"alg": "none", "typ": "JWT"}, claims()),
    "alg None": lambda: unsigned({"alg": "None", "typ": "JWT"}, claims()),
    "alg missing": lambda: unsigned({"typ": "JWT"}, claims()),
    "another algorithm of the same key": lambda: jwt.encode(claims(), RSA, algorithm="RS512"),
    "public key as secret": hmac_with_public_key,
    "signature cut off": lambda: signed().rpartition(".")[0] + ".",
    "payload changed": lambda: changed(signed()),
    "unknown critical header": lambda: jwt.encode(
        claims(), RSA, algorithm="RS256", headers={"crit": ["exp2"], "exp2": 1}
    ),
    "too long": lambda: signed(extra="x" * 9000),
    "not a token": lambda: "a.b.c",
    "one word": lambda: "x",
}


@pytest.mark.parametrize("what", FORGED)
async def test_a_token_that_is_not_exactly_right_is_refused(web: Web, what: str) -> None:
    """And all of them alike, byte for byte.

    Proven once by leaving `algorithms` and `require` out of the call.
    """
    answer = await web.bearer(FORGED[what]()).post("/v1/sessions")
    other = await web.bearer("x.y.z").post("/v1/sessions")

    assert answer.status_code == 401
    assert answer.content == other.content
    assert web.rows("SELECT count(*) FROM livewell.viewer_session") == [(0,)]


async def test_scopes_come_from_the_named_claim(web: Web) -> None:
    """Words or a list; unknown ones are nothing; an empty claim is no scope at all."""
    statuses = [
        (await web.bearer(signed(scope=scope)).post("/v1/sessions")).status_code
        for scope in ("subscribe other", ["view", "subscribe"], "view", "", [], 7, {"subscribe": True})
    ]

    assert statuses == [201, 201, 403, 403, 403, 403, 403]


async def test_a_token_whose_issuer_is_no_longer_good_ends_a_stream(web: Web) -> None:
    """What streams ask every minute."""
    from livewell.server.auth.caller import Caller  # noqa: PLC0415 - only here

    good = Caller("jwt:rsa:ann", "jwt:rsa:ann", "jwt", frozenset({"view"}), token=signed())
    old = Caller("jwt:rsa:ann", "jwt:rsa:ann", "jwt", frozenset({"view"}), token=signed(exp=int(time.time()) - 60))

    assert (await web.state.auth.renew(good)) is not None
    assert (await web.state.auth.renew(old)) is None


def test_long_subjects_are_known_by_their_hash_and_collide_with_nobody() -> None:
    """At most 200 bytes, as the database wants it."""
    users = {user_of("idp", "x" * 195), user_of("idp", "x" * 196), user_of("idp", "a"), user_of("id", "p:a")}

    assert len(users) == 4
    assert all(len(user.encode()) <= 200 and not user.startswith(("key:", "session:")) for user in users)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"key": "env:LIVEWELL_TEST_NOT_THERE"}, "is not set"),
        ({"key": "file:/nowhere/key.pem"}, "cannot be read"),
        ({"algorithm": "HS256"}, "not a PEM key"),
        ({"algorithm": "ES256"}, "no public key"),
        ({"key": "env:LIVEWELL_TEST_JWT_HS"}, "no public key"),
    ],
)
def test_a_key_that_cannot_be_used_is_said_at_the_start(changes: dict[str, Any], told: str) -> None:
    """Not at the first request, and without the key itself."""
    with pytest.raises(ConfigurationError, match=told) as caught:
        Tokens([issuer("rsa", **changes)])

    assert SECRET not in str(caught.value)
