"""Links of S3 that say what the file is called.

The client library signs links, but none with a name and a type for the answer, so that a browser
would save "7.pdf" by the name in the bucket. Signing one is a page of arithmetic (AWS Signature
Version 4, in the query), and the tests compare it with botocore's.

A link begins five minutes in the past: a store whose clock is behind ours refuses what was signed
in its future. Its end is as late as was asked, by our clock, so a store whose clock is ahead ends
it that much sooner.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import quote

from livewell.exports.artifacts.s3_address import S3Address, S3Key

LINK_SECONDS_MAX = 3_600
SKEW_SECONDS = 300
_ALGORITHM = "AWS4-HMAC-SHA256"


def presigned_url(
    address: S3Address, key: S3Key, path: str, *, now: datetime, seconds: int, answer: Mapping[str, str]
) -> str:
    """An address that gives the object to whoever has it, until now + seconds.

    answer: headers that the store shall answer with, by the names of their parameters
    """
    begins = now - timedelta(seconds=SKEW_SECONDS)
    stamp = begins.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{address.region}/s3/aws4_request"
    host, where = _place(address, path)
    query = "&".join(
        f"{_escape(name)}={_escape(value)}"
        for name, value in sorted(
            {
                "X-Amz-Algorithm": _ALGORITHM,
                "X-Amz-Credential": f"{key.id}/{scope}",
                "X-Amz-Date": stamp,
                "X-Amz-Expires": str(seconds + SKEW_SECONDS),
                "X-Amz-SignedHeaders": "host",
                **answer,
            }.items()
        )
    )
    request = f"GET\n{where}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = _sign(_signing_key(key, address.region, stamp[:8]), to_sign).hex()
    return f"{address.base.partition('://')[0]}://{host}{where}?{query}&X-Amz-Signature={signature}"


def _place(address: S3Address, path: str) -> tuple[str, str]:
    host = address.base.partition("://")[2]
    name = quote(address.object_key(path), safe="/-_.~")
    return host, f"/{name}" if address.virtual_host else f"/{address.bucket}/{name}"


def _signing_key(key: S3Key, region: str, day: str) -> bytes:
    made = b"AWS4" + key.secret.get_secret_value().encode()
    for part in (day, region, "s3", "aws4_request"):
        made = _sign(made, part)
    return made


def _sign(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _escape(text: str) -> str:
    return quote(text, safe="-_.~")
