"""Where an S3-compatible store is, and who we are there.

The store is a setting, s3://bucket/prefix; the endpoint is one, too, where it is not Amazon's. Who
we are stands in the environment, under the names that every tool for S3 reads:

    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY     a key; links of S3 are made with it
    AWS_SESSION_TOKEN                            makes the key temporary
    neither                                      a role: of the container, of the machine, by a token file
    AWS_REGION or AWS_DEFAULT_REGION             us-east-1 if not set

Path style or virtual host: with Amazon the bucket is a part of the host, unless it has a dot, for
which no certificate fits. With another endpoint it is a part of the path, unless the host of the
endpoint begins with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from livewell.errors import ConfigurationError

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_STORE = "LIVEWELL_EXPORT_STORE"
_ENDPOINT = "LIVEWELL_EXPORT_S3_ENDPOINT"


@dataclass(frozen=True, slots=True)
class S3Key:
    """A key that lasts: what links can be signed with."""

    id: str
    secret: SecretStr


@dataclass(frozen=True, slots=True)
class S3Address:
    """All that a client, and a link, need to know.

    base     scheme and host of every request, without the bucket unless virtual_host
    key      None: a role, or a key that is temporary
    """

    bucket: str
    prefix: str
    base: str
    region: str
    virtual_host: bool
    key: S3Key | None

    @property
    def is_plain_http(self) -> bool:
        """True where the operator chose an endpoint without TLS."""
        return self.base.startswith("http://")

    def object_key(self, path: str) -> str:
        """The name of an artifact in the bucket."""
        return f"{self.prefix}/{path}" if self.prefix else path


def read_s3_address(store: str, endpoint: str | None, environment: Mapping[str, str]) -> S3Address:
    """Raises ConfigurationError, which names the variable to mend."""
    bucket, _, prefix = store.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise ConfigurationError(
            f"{_STORE}: s3://bucket/prefix is wanted; a bucket has 3 to 63 small letters, digits, dots and hyphens"
        )
    if prefix and (not _PREFIX.fullmatch(prefix) or len(prefix) > 200):
        raise ConfigurationError(
            f"{_STORE}: a prefix has words of letters, digits, dots, hyphens and underscores, with / between them"
        )
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not _REGION.fullmatch(region):
        raise ConfigurationError("AWS_REGION: a region is a word like eu-central-1")
    base, virtual_host = _place(bucket, region, endpoint)
    return S3Address(bucket, prefix, base, region, virtual_host, _key(environment))


def _place(bucket: str, region: str, endpoint: str | None) -> tuple[str, bool]:
    if endpoint is None:
        virtual_host = "." not in bucket
        return f"https://{bucket + '.' if virtual_host else ''}s3.{region}.amazonaws.com", virtual_host
    try:
        parts = urlsplit(endpoint.strip())
        port = parts.port
    except ValueError:
        raise ConfigurationError(f"{_ENDPOINT}: https://host:port is wanted") from None
    host = (parts.hostname or "").lower()
    odd = parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("http", "https") or not host or odd:
        raise ConfigurationError(f"{_ENDPOINT}: https://host:port is wanted, without a path, a user or a query")
    host = f"[{host}]" if ":" in host else host
    standard = {"http": 80, "https": 443}[parts.scheme]
    where = host if port in (None, standard) else f"{host}:{port}"
    return f"{parts.scheme}://{where}", host.startswith(f"{bucket}.")


def _key(environment: Mapping[str, str]) -> S3Key | None:
    key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    temporary = environment.get("AWS_SESSION_TOKEN") or environment.get("AWS_TOKEN")
    return S3Key(key, SecretStr(secret)) if key and secret and not temporary else None
