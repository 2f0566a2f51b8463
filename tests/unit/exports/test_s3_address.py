"""Where an S3-compatible store is, by the settings and the environment."""

from __future__ import annotations

import pytest

from livewell.errors import ConfigurationError
from livewell.exports.artifacts.s3_address import read_s3_address

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "canary"}


@pytest.mark.parametrize(
    ("store", "endpoint", "environment", "base", "virtual_host", "key"),
    [
        ("s3://bucket/a/b", None, {}, "https://bucket.s3.us-east-1.amazonaws.com", True, "a/b/x"),
        ("s3://bucket", None, {"AWS_REGION": "eu-west-1"}, "https://bucket.s3.eu-west-1.amazonaws.com", True, "x"),
        ("s3://my.bucket/", None, {"AWS_DEFAULT_REGION": "r-1"}, "https://s3.r-1.amazonaws.com", False, "x"),
        ("s3://bucket/p/", "https://minio:9000", {}, "https://minio:9000", False, "p/x"),
        ("s3://bucket", "http://127.0.0.1:9000/", {}, "http://127.0.0.1:9000", False, "x"),
        ("s3://bucket", "https://bucket.store.example:443", {}, "https://bucket.store.example", True, "x"),
        ("s3://bucket", "https://[::1]:9000", {}, "https://[::1]:9000", False, "x"),
    ],
)
def test_an_address_is_read(
    store: str, endpoint: str | None, environment: dict[str, str], base: str, *, virtual_host: bool, key: str
) -> None:
    """Amazon's by the bucket's host, others by the path, unless their host begins with the bucket."""
    found = read_s3_address(store, endpoint, environment)
    assert (found.base, found.virtual_host, found.object_key("x")) == (base, virtual_host, key)


@pytest.mark.parametrize(
    ("store", "endpoint", "variable"),
    [
        ("s3://", None, "EXPORT_STORE"),
        ("s3://A", None, "EXPORT_STORE"),
        ("s3://BUCKET", None, "EXPORT_STORE"),
        ("s3://bu..cket", None, "EXPORT_STORE"),
        ("s3://user:canary@bucket/x", None, "EXPORT_STORE"),
        ("s3://bucket/../x", None, "EXPORT_STORE"),
        ("s3://bucket/a//b", None, "EXPORT_STORE"),
        ("s3://bucket/a?b", None, "EXPORT_STORE"),
        ("s3://bucket", "minio:9000", "ENDPOINT"),
        ("s3://bucket", "ftp://minio", "ENDPOINT"),
        ("s3://bucket", "https://user:canary@minio", "ENDPOINT"),
        ("s3://bucket", "https://minio/path", "ENDPOINT"),
        ("s3://bucket", "https://minio?x=canary", "ENDPOINT"),
        ("s3://bucket", "https://minio:port", "ENDPOINT"),
        ("s3://bucket", "https://", "ENDPOINT"),
    ],
)
def test_a_wrong_address_is_refused_by_the_name_of_its_setting(store: str, endpoint: str | None, variable: str) -> None:
    """And no secret that somebody wrote into it is shown."""
    with pytest.raises(ConfigurationError, match=variable) as caught:
        read_s3_address(store, endpoint, {})
    assert "canary" not in str(caught.value)


def test_links_are_signed_only_with_a_key_that_lasts() -> None:
    """A session token, or a role, ends before its links would."""
    assert read_s3_address("s3://bucket", None, KEYS).key is not None
    assert read_s3_address("s3://bucket", None, {**KEYS, "AWS_SESSION_TOKEN": "t"}).key is None
    assert read_s3_address("s3://bucket", None, {}).key is None
    assert "canary" not in repr(read_s3_address("s3://bucket", None, KEYS))
