"""Links of S3 (E8): as botocore signs them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from livewell.exports.artifacts.s3_address import S3Address, S3Key
from livewell.exports.artifacts.s3_links import SKEW_SECONDS, presigned_url

KEY = S3Key("AKIDEXAMPLE", SecretStr("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
NOW = datetime(2026, 11, 19, 21, 45, tzinfo=UTC)

try:
    auth: Any = import_module("botocore.auth")
except ImportError:  # pragma: no cover – the wheel comes with moto
    pytest.skip("botocore is not installed: links of S3 were not compared", allow_module_level=True)


def theirs(url: str, expires: int, region: str) -> str:
    """The same address as botocore signs it at that moment."""
    request = import_module("botocore.awsrequest").AWSRequest("GET", url)
    credentials = import_module("botocore.credentials").Credentials(KEY.id, KEY.secret.get_secret_value())
    signer = auth.S3SigV4QueryAuth(credentials, "s3", region, expires=expires)
    patch = pytest.MonkeyPatch()
    patch.setattr(auth, "get_current_datetime", lambda: (NOW - timedelta(seconds=SKEW_SECONDS)).replace(tzinfo=None))
    try:
        signer.add_auth(request)
    finally:
        patch.undo()
    return str(request.url)


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    prefix=st.sampled_from(["", "a", "a/b-c_d.e"]),
    seconds=st.integers(1, 3_600),
    virtual_host=st.booleans(),
    region=st.sampled_from(["us-east-1", "eu-central-1"]),
)
def test_a_link_is_signed_as_botocore_signs_it(
    name: str, prefix: str, seconds: int, region: str, *, virtual_host: bool
) -> None:
    """Any name for the answer, both styles of address, any region."""
    host = f"{'bucket.' if virtual_host else ''}s3.example:9000"
    address = S3Address("bucket", prefix, f"https://{host}", region, virtual_host=virtual_host, key=KEY)
    answer = {"response-content-disposition": name, "response-content-type": "application/pdf"}
    ours = presigned_url(address, KEY, "u/e/7.pdf", now=NOW, seconds=seconds, answer=answer)
    bare = ours.partition("?")[0]
    query = "&".join(part for part in ours.partition("?")[2].split("&") if part.startswith("response-"))
    their_query = parse_qs(urlsplit(theirs(f"{bare}?{query}", seconds + SKEW_SECONDS, region)).query)
    assert parse_qs(urlsplit(ours).query) == their_query


def test_a_link_begins_a_little_ago_and_ends_when_it_was_asked_to() -> None:
    """A store whose clock is five minutes behind ours takes it at once (demand 10)."""
    address = S3Address("bucket", "", "https://s3.example", "us-east-1", virtual_host=False, key=KEY)
    url = presigned_url(address, KEY, "u/e/7.pdf", now=NOW, seconds=3_600, answer={})
    query = parse_qs(urlsplit(url).query)
    begins = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert begins == NOW - timedelta(minutes=5)
    assert begins + timedelta(seconds=int(query["X-Amz-Expires"][0])) == NOW + timedelta(hours=1)
